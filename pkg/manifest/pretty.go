package manifest

import (
	"bytes"
	"encoding/json"
)

// PrettyJSON returns v in JSON with a line for each of its members that is a collection, and for
// each item of a list down to levels levels: a change is a small diff. Members that are not
// collections share a line.
func PrettyJSON(v any, levels int) string {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // the types written here are all encodable
	}
	data := bytes.TrimSpace(raw.Bytes())
	inList := func(open []byte, at int) bool {
		if len(open) == 1 {
			return data[at] != ',' || !scalarsAround(data, at)
		}
		return len(open) <= levels && open[len(open)-1] == '['
	}
	return string(append(breakLines(make([]byte, 0, len(data)+len(data)/4), data, 0, inList), '\n'))
}

// scalarsAround reports whether the members of an object around a comma are both no collections.
func scalarsAround(data []byte, comma int) bool {
	if before := data[comma-1]; before == '}' || before == ']' {
		return false
	}
	quoted := false
	for i := comma + 1; i < len(data); i++ {
		switch {
		case quoted && data[i] == '\\':
			i++
		case data[i] == '"':
			quoted = !quoted
		case !quoted && data[i] == ':':
			return data[i+1] != '{' && data[i+1] != '['
		}
	}
	return false
}

// everywhere is for breakLines.
func everywhere([]byte, int) bool { return true }

// breakLines appends compact JSON, two spaces a level after indent, with a line at each bracket
// and comma for which breaks returns true. open are the brackets around it, and at is where in
// data it is.
func breakLines(out, data []byte, indent int, breaks func(open []byte, at int) bool) []byte {
	quoted := false
	var open []byte // the brackets around the current place
	newline := func() { out = appendSpaces(append(out, '\n'), indent+2*len(open)) }
	for i := 0; i < len(data); i++ {
		c := data[i]
		if quoted {
			out = append(out, c)
			switch c {
			case '\\':
				i++
				out = append(out, data[i])
			case '"':
				quoted = false
			}
			continue
		}
		switch c {
		case '"':
			quoted = true
			out = append(out, c)
		case '{', '[':
			out = append(out, c)
			open = append(open, c)
			if breaks(open, i) && data[i+1] != '}' && data[i+1] != ']' {
				newline()
			}
		case '}', ']':
			broken := breaks(open, i) && data[i-1] != '{' && data[i-1] != '['
			open = open[:len(open)-1]
			if broken {
				newline()
			}
			out = append(out, c)
		case ',':
			out = append(out, c)
			if breaks(open, i) {
				newline()
			} else {
				out = append(out, ' ')
			}
		case ':':
			out = append(out, ": "...)
		default:
			out = append(out, c)
		}
	}
	return out
}
