package manifest

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// This file is a YAML writer. Libraries exist, but they take several times as
// long. BenchmarkYAML of pkg/render, for a lab of 1,000 nodes and 4,000
// links (15.9 MB of YAML), in seconds of processor time, from typed objects to text:
//
//	this file             1.3
//	go.yaml.in/yaml/v3    5.1   keys of an object in alphabetical order
//	go.yaml.in/yaml/v3    7.4   keys in our order, through yaml.Node
//	sigs.k8s.io/yaml      7.3   keys of an object in alphabetical order
//
// On two processors that is 1.9 to 3.1 seconds more. The libraries also write a text
// with a tab or with spaces at the end of a line in quotes, so that a startup-config
// becomes one long line in a diff. FuzzYAML reads the output back with all three
// parsers.

// flowWidth is the longest line, in bytes, of a collection that is written in one line.
const flowWidth = 144

// yamlWriter converts the JSON that encode makes (compact and well-formed) to YAML: block
// style, but one line for what is short. Lists have the indentation of their key, as kubectl
// writes them.
type yamlWriter struct {
	in  []byte
	pos int
	out []byte
	// decoded is room for a string that has escapes.
	decoded []byte
	// line is where the current line starts in out.
	line int
	// comments are for keys, by their path with dots; path is that of the current key.
	comments map[string]string
	path     []byte
}

// appendYAML appends data, an object in encode's JSON, as YAML.
// comments are written above the keys with these paths ("spec.template").
func appendYAML(b, data []byte, comments map[string]string) (out []byte, err error) {
	w := yamlWriter{in: data, out: b, line: len(b), comments: comments}
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

// members writes the object at pos. Its first key continues the current line.
func (w *yamlWriter) members(indent int) {
	for first := true; w.step(); first = false {
		if !first {
			w.out = appendSpaces(w.out, indent)
		}
		key := w.pos
		if w.comments != nil {
			end := len(w.path)
			w.enter()
			w.comment(indent)
			w.pos = key
			w.entry(indent)
			w.path = w.path[:end]
			continue
		}
		w.entry(indent)
	}
}

// entry writes one key with its value.
func (w *yamlWriter) entry(indent int) {
	key := w.in[w.pos:]
	w.key()
	w.pos++ // the colon
	w.member(indent, !ownLines(key))
}

// enter adds the key at pos to the path.
func (w *yamlWriter) enter() {
	if len(w.path) > 0 {
		w.path = append(w.path, '.')
	}
	w.path = append(w.path, w.str()...)
}

// comment writes the comment on the current key, if any, in place of the indentation that
// is written already.
func (w *yamlWriter) comment(indent int) {
	text, ok := w.comments[string(w.path)]
	if !ok {
		return
	}
	w.out = append(append(w.out, "# "...), text...)
	w.newline()
	w.out = appendSpaces(w.out, indent)
}

// newline ends the current line.
func (w *yamlWriter) newline() {
	w.out = append(w.out, '\n')
	w.line = len(w.out)
}

// ownLines reports whether what is under key, in quotes at the start of data, has lines of its
// own, however short: files, and what readers look for.
func ownLines(data []byte) bool {
	return bytes.HasPrefix(data, []byte(`"data"`)) || bytes.HasPrefix(data, []byte(`"metadata"`))
}

// flow writes the collection at pos in one line, and reports whether it is short enough.
func (w *yamlWriter) flow() bool {
	pos, out := w.pos, len(w.out)
	if w.flowValue() && len(w.out)-w.line <= flowWidth {
		w.newline()
		return true
	}
	w.pos, w.out = pos, w.out[:out]
	return false
}

// flowValue writes the value at pos, and gives up when the line is too long.
func (w *yamlWriter) flowValue() bool {
	if len(w.out)-w.line > flowWidth {
		return false
	}
	c := w.in[w.pos]
	switch {
	case c == '"':
		return w.flowString()
	case c != '{' && c != '[' || w.empty():
		w.bare()
		return true
	}
	w.out = append(w.out, c)
	// Objects in a list have a line each: a change of one is a change of one line.
	objects := c == '[' && w.in[w.pos+1] == '{'
	for first := true; w.step(); first = false {
		if !first && objects {
			return false
		}
		if !first {
			w.out = append(w.out, ", "...)
		}
		if c == '{' {
			if ownLines(w.in[w.pos:]) || !w.flowString() {
				return false
			}
			w.pos++ // the colon
			w.out = append(w.out, ": "...)
		}
		if !w.flowValue() {
			return false
		}
	}
	w.out = append(w.out, w.in[w.pos-1])
	return true
}

// flowString writes the string at pos within a line of several. It gives up for a text of
// several lines, which is easier to read as a block.
func (w *yamlWriter) flowString() bool {
	s := w.str()
	switch {
	case len(s) > flowWidth || bytes.IndexByte(s, '\n') >= 0:
		return false
	case plain(s) && !bytes.ContainsAny(s, ",[]{}?"):
		w.out = append(w.out, s...)
	default:
		w.out = appendQuoted(w.out, s)
	}
	return true
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

// member writes the value after a key at indent, with the line's end: in one line if that is
// allowed and it fits.
func (w *yamlWriter) member(indent int, inLine bool) {
	w.out = append(w.out, ':')
	c := w.in[w.pos]
	if inLine && (c == '{' || c == '[') && !w.empty() {
		w.out = append(w.out, ' ')
		if w.flow() {
			return
		}
		w.out = w.out[:len(w.out)-1]
	}
	switch {
	case c == '{' && !w.empty():
		w.newline()
		w.out = appendSpaces(w.out, indent+2)
		w.members(indent + 2)
	case c == '[' && !w.empty():
		w.newline()
		w.out = appendSpaces(w.out, indent)
		w.sequence(indent)
	default:
		w.out = append(w.out, ' ')
		w.scalar(indent + 2)
	}
}

// sequence writes the list at pos. Its first dash continues the current line, the
// others are at indent.
func (w *yamlWriter) sequence(indent int) {
	for first := true; w.step(); first = false {
		if !first {
			w.out = appendSpaces(w.out, indent)
		}
		w.out = append(w.out, '-', ' ')
		switch c := w.in[w.pos]; {
		case (c == '{' || c == '[') && !w.empty() && w.flow():
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
	case '"':
		s := w.str()
		if plain(s) {
			w.out = append(w.out, s...)
		} else if ok, indicator := literalBlock(s); ok {
			w.out = appendBlock(w.out, s, indent, indicator)
			w.line = len(w.out)
			return
		} else {
			w.out = appendQuoted(w.out, s)
		}
	default:
		w.bare()
	}
	w.newline()
}

// bare writes a number, a bool, null or an empty collection.
func (w *yamlWriter) bare() {
	if c := w.in[w.pos]; c == '{' || c == '[' {
		w.out = append(w.out, c, w.in[w.pos+1])
		w.pos += 2
		return
	}
	start := w.pos
	for c := w.in[w.pos]; c != ',' && c != '}' && c != ']'; c = w.in[w.pos] {
		w.pos++
	}
	w.out = append(w.out, w.in[start:w.pos]...)
}

// str reads the string at pos. The result is valid until the next call.
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

// appendBlock appends text as a literal block. The chomping indicator is "-" for no
// newline at the end, nothing for one and "+" for more.
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

// appendQuoted appends s in double quotes, escaped so that JSON and every version of
// YAML read the same string.
func appendQuoted[T string | []byte](b []byte, s T) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, `\n`...)
			case '\t':
				b = append(b, `\t`...)
			case '\r':
				b = append(b, `\r`...)
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := decodeRune(s[i:])
		if printable(r) && (r != utf8.RuneError || size == 3) {
			i += size
			continue
		}
		b = append(b, s[start:i]...)
		b = append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		i += size
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func decodeRune[T string | []byte](s T) (rune, int) {
	switch s := any(s).(type) {
	case string:
		return utf8.DecodeRuneInString(s)
	case []byte:
		return utf8.DecodeRune(s)
	}
	panic("neither")
}

// printable reports whether YAML takes r unescaped and not as a line break. YAML 1.1
// counts U+0085, U+2028 and U+2029 as line breaks.
func printable(r rune) bool {
	switch {
	case r < 0xa0:
		return r >= 0x20 && r < 0x7f
	case r == 0x2028 || r == 0x2029 || r == 0xfeff:
		return false
	}
	return r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000
}

// plain reports whether YAML 1.1 and 1.2 read s without quotes as the same string. It
// errs on the side of quotes.
func plain(s []byte) bool {
	if len(s) == 0 || len(s) > 1000 || !plainStart(s) {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < 0x20 || c >= 0x7f:
			return false
		case c == ':' && (i+1 == len(s) || s[i+1] == ' '):
			return false
		case c == '#' && s[i-1] == ' ':
			return false
		}
	}
	return s[len(s)-1] != ' ' && !reserved(s)
}

// plainStart allows letters, "/" and "_" at the start, and digits where the rest
// rules a number, a date and a base-60 number out.
func plainStart(s []byte) bool {
	c := s[0]
	switch {
	case c|0x20 >= 'a' && c|0x20 <= 'z' || c == '/':
		return true
	case c == '_':
		return len(bytes.Trim(s, "_0123456789.")) > 0
	case c >= '0' && c <= '9':
		return dottedQuad(s) || letterOutsideNumbers(s)
	}
	return false
}

// letterOutsideNumbers reports whether s has a letter that no number (binary,
// octal, hexadecimal, exponent) and no timestamp has.
func letterOutsideNumbers(s []byte) bool {
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if c >= 'g' && c <= 'z' && c != 'o' && c != 'x' && c != 'p' && c != 't' && c != 'z' {
			return true
		}
	}
	return false
}

// dottedQuad reports whether s is digits with three dots: an IPv4 address.
func dottedQuad(s []byte) bool {
	dots := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '.':
			dots++
		case c < '0' || c > '9':
			return false
		}
	}
	return dots == 3
}

// reserved reports whether YAML 1.1 or 1.2 reads the word as a bool or null.
func reserved(s []byte) bool {
	if len(s) > 5 {
		return false
	}
	var lower [5]byte
	for i, c := range s {
		lower[i] = c | 0x20
	}
	switch string(lower[:len(s)]) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return true
	}
	return false
}

// literalBlock reports whether s can be written as a "|" block, and whether the block
// needs an indentation indicator.
func literalBlock(s []byte) (ok, indicator bool) {
	newline := false
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '\n':
				newline = true
			case c < 0x20 && c != '\t' || c == 0x7f:
				return false, false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		if !printable(r) || r == utf8.RuneError {
			return false, false
		}
		i += size
	}
	if !newline || len(bytes.Trim(s, "\n ")) == 0 {
		return false, false
	}
	return true, s[0] == ' ' || s[0] == '\n' || s[0] == '\t'
}
