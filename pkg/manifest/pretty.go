package manifest

import (
	"bytes"
	"encoding/json"
)

// PrettyJSON returns v in JSON with line breaks down to levels levels, so that each
// list item has its own line and a change is a small diff.
func PrettyJSON(v any, levels int) string {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // the types written here are all encodable
	}
	data := bytes.TrimSpace(raw.Bytes())
	return string(append(breakLines(make([]byte, 0, len(data)+len(data)/4), data, 0, levels), '\n'))
}

// breakLines appends compact JSON with line breaks down to levels levels, two
// spaces a level after indent.
func breakLines(out, data []byte, indent, levels int) []byte {
	depth, quoted := 0, false
	newline := func() { out = appendSpaces(append(out, '\n'), indent+2*depth) }
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
			depth++
			if depth <= levels && data[i+1] != '}' && data[i+1] != ']' {
				newline()
			}
		case '}', ']':
			depth--
			if depth < levels && data[i-1] != '{' && data[i-1] != '[' {
				newline()
			}
			out = append(out, c)
		case ',':
			out = append(out, c)
			if depth <= levels {
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
