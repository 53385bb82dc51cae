package manifest

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// yamlWriter turns the JSON that encode makes (compact and well-formed) into block
// YAML. Lists stand at the indentation of their key, as kubectl writes them.
type yamlWriter struct {
	in  []byte
	pos int
	out []byte
	// decoded is room for a string that has escapes.
	decoded []byte
}

// appendYAML appends data, an object in encode's JSON, as YAML.
func appendYAML(b, data []byte) (out []byte, err error) {
	w := yamlWriter{in: data, out: b}
	defer func() { // the parser indexes without looking: encode's output is well-formed
		if r := recover(); r != nil {
			err = fmt.Errorf("JSON at byte %d is not what encode writes: %v", w.pos, r)
		}
	}()
	if string(data) == "{}" {
		return append(b, "{}\n"...), nil
	}
	w.members(0)
	if w.pos != len(data) {
		return nil, fmt.Errorf("JSON at byte %d: text after the end", w.pos)
	}
	return w.out, nil
}

func (w *yamlWriter) empty() bool { return w.in[w.pos+1] == '}' || w.in[w.pos+1] == ']' }

// members writes the object at pos, its first key where the line is.
func (w *yamlWriter) members(indent int) {
	for first := true; w.step(); first = false {
		if !first {
			w.out = appendSpaces(w.out, indent)
		}
		w.key()
		w.pos++ // the colon
		w.member(indent)
	}
}

// step goes past "{", "[" or "," and true, or past the end of the collection and
// false.
func (w *yamlWriter) step() bool {
	c := w.in[w.pos]
	w.pos++
	return c != '}' && c != ']'
}

func (w *yamlWriter) key() {
	if s := w.str(); plain(s) {
		w.out = append(w.out, s...)
	} else {
		w.out = appendQuoted(w.out, s)
	}
}

// member writes the value after a key at indent, with the line's end.
func (w *yamlWriter) member(indent int) {
	w.out = append(w.out, ':')
	switch c := w.in[w.pos]; {
	case c == '{' && !w.empty():
		w.out = appendSpaces(append(w.out, '\n'), indent+2)
		w.members(indent + 2)
	case c == '[' && !w.empty():
		w.out = appendSpaces(append(w.out, '\n'), indent)
		w.sequence(indent)
	default:
		w.out = append(w.out, ' ')
		w.scalar(indent + 2)
	}
}

// sequence writes the list at pos, its first dash where the line is, the others
// at indent.
func (w *yamlWriter) sequence(indent int) {
	for first := true; w.step(); first = false {
		if !first {
			w.out = appendSpaces(w.out, indent)
		}
		w.out = append(w.out, '-', ' ')
		switch c := w.in[w.pos]; {
		case c == '{' && !w.empty():
			w.members(indent + 2)
		case c == '[' && !w.empty():
			w.sequence(indent + 2)
		default:
			w.scalar(indent + 2)
		}
	}
}

// scalar writes a scalar or an empty collection with its line's end; the lines of
// a block are at indent.
func (w *yamlWriter) scalar(indent int) {
	switch w.in[w.pos] {
	case '{', '[':
		w.out = append(w.out, w.in[w.pos], w.in[w.pos+1])
		w.pos += 2
	case '"':
		s := w.str()
		if plain(s) {
			w.out = append(w.out, s...)
		} else if ok, indicator := literalBlock(s); ok {
			w.out = appendBlock(w.out, s, indent, indicator)
			return
		} else {
			w.out = appendQuoted(w.out, s)
		}
	default:
		start := w.pos
		for c := w.in[w.pos]; c != ',' && c != '}' && c != ']'; c = w.in[w.pos] {
			w.pos++
		}
		w.out = append(w.out, w.in[start:w.pos]...)
	}
	w.out = append(w.out, '\n')
}

// str reads the string at pos. The result is good until the next call.
func (w *yamlWriter) str() []byte {
	w.pos++
	rest := w.in[w.pos:]
	n := bytes.IndexByte(rest, '"')
	if bytes.IndexByte(rest[:n], '\\') < 0 {
		w.pos += n + 1
		return rest[:n]
	}
	w.decoded = w.decoded[:0]
	start := w.pos
	for {
		switch w.in[w.pos] {
		case '"':
			w.decoded = append(w.decoded, w.in[start:w.pos]...)
			w.pos++
			return w.decoded
		case '\\':
			w.decoded = append(w.decoded, w.in[start:w.pos]...)
			w.pos++
			w.escape()
			start = w.pos
		default:
			w.pos++
		}
	}
}

// escape decodes what follows a backslash.
func (w *yamlWriter) escape() {
	c := w.in[w.pos]
	w.pos++
	switch c {
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'u':
		r := w.hex4()
		if utf16.IsSurrogate(r) && w.in[w.pos] == '\\' && w.in[w.pos+1] == 'u' {
			w.pos += 2
			r = utf16.DecodeRune(r, w.hex4())
		}
		w.decoded = utf8.AppendRune(w.decoded, r)
		return
	}
	w.decoded = append(w.decoded, c)
}

func (w *yamlWriter) hex4() rune {
	var r rune
	for range 4 {
		c := w.in[w.pos]
		w.pos++
		if c > '9' {
			c = c&^0x20 - 'A' + '9' + 1
		}
		r = r<<4 | rune(c-'0')
	}
	return r
}

// appendBlock writes text as a literal block. The chomping indicator says how
// many newlines end it: "-" none, nothing one, "+" all that are there.
func appendBlock(b, text []byte, indent int, indicator bool) []byte {
	b = append(b, '|')
	if indicator {
		b = append(b, '2')
	}
	switch len(text) - len(bytes.TrimRight(text, "\n")) {
	case 0:
		b = append(b, '-')
	case 1:
	default:
		b = append(b, '+')
	}
	b = append(b, '\n')
	text = bytes.TrimSuffix(text, []byte{'\n'})
	for {
		line, rest, more := bytes.Cut(text, []byte{'\n'})
		if len(line) > 0 {
			b = append(appendSpaces(b, indent), line...)
		}
		b = append(b, '\n')
		if !more {
			return b
		}
		text = rest
	}
}

const spaces = "                                                                "

func appendSpaces(b []byte, n int) []byte {
	for n > len(spaces) {
		b = append(b, spaces...)
		n -= len(spaces)
	}
	return append(b, spaces[:n]...)
}
