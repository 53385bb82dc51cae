package manifest

import (
	"bytes"
	"encoding/json"
)

// PrettyJSON returns v in JSON with a line for each of its members, and for each item of a list
// down to levels levels: a change is a small diff.
func PrettyJSON(v any, levels int) string {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // the types written here are all encodable
	}
	data := bytes.TrimSpace(raw.Bytes())
	inList := func(open []byte) bool {
		return len(open) == 1 || len(open) <= levels && open[len(open)-1] == '['
	}
	return string(append(breakLines(make([]byte, 0, len(data)+len(data)/4), data, 0, inList), '\n'))
}

// everywhere is for breakLines.
func everywhere([]byte) bool { return true }

// breakLines appends compact JSON, two spaces a level after indent, with a line for each item
// of the collections for which breaks returns true. open are the brackets around an item.
func breakLines(out, data []byte, indent int, breaks func(open []byte) bool) []byte {
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
			if breaks(open) && data[i+1] != '}' && data[i+1] != ']' {
				newline()
			}
		case '}', ']':
			broken := breaks(open) && data[i-1] != '{' && data[i-1] != '['
			open = open[:len(open)-1]
			if broken {
				newline()
			}
			out = append(out, c)
		case ',':
			out = append(out, c)
			if breaks(open) {
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
