package render

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// valueKind is the kind of a JSON value.
type valueKind uint8

const (
	kindNull valueKind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// value is one JSON value. Scalars keep their text: of a string the decoded one,
// of a number, a bool and null the literal.
type value struct {
	kind  valueKind
	text  string
	items []value
	// keys belong to the items of an object.
	keys []string
}

// parseTree reads JSON as this program itself has marshalled it.
func parseTree(data []byte) (value, error) {
	p := treeParser{data: data}
	p.space()
	v, err := p.value()
	if err != nil {
		return value{}, err
	}
	p.space()
	if p.pos != len(data) {
		return value{}, p.errorf("text after the end")
	}
	return v, nil
}

// get returns the member called key, or nil.
func (v *value) get(key string) *value {
	if i := slices.Index(v.keys, key); i >= 0 && v.kind == kindObject {
		return &v.items[i]
	}
	return nil
}

// drop removes the member called key.
func (v *value) drop(key string) {
	if i := slices.Index(v.keys, key); i >= 0 && v.kind == kindObject {
		v.keys = slices.Delete(v.keys, i, i+1)
		v.items = slices.Delete(v.items, i, i+1)
	}
}

// empty tells whether v is null, {} or [].
func (v *value) empty() bool {
	return v.kind == kindNull || v.kind >= kindArray && len(v.items) == 0
}

type treeParser struct {
	data []byte
	pos  int
}

func (p *treeParser) errorf(format string, args ...any) error {
	return fmt.Errorf("JSON at byte %d: %s", p.pos, fmt.Sprintf(format, args...))
}

func (p *treeParser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\n', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *treeParser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

func (p *treeParser) value() (value, error) {
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		s, err := p.str()
		return value{kind: kindString, text: s}, err
	case c == '-' || c >= '0' && c <= '9':
		return value{kind: kindNumber, text: p.literal()}, nil
	}
	switch word := p.literal(); word {
	case "true", "false":
		return value{kind: kindBool, text: word}, nil
	case "null":
		return value{kind: kindNull, text: word}, nil
	default:
		return value{}, p.errorf("unexpected %q", word)
	}
}

// literal takes everything up to the next delimiter.
func (p *treeParser) literal() string {
	start := p.pos
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return string(p.data[start:p.pos])
		}
		p.pos++
	}
	return string(p.data[start:])
}

func (p *treeParser) object() (value, error) {
	v := value{kind: kindObject}
	for p.next('{', '}', len(v.items) == 0) {
		key, err := p.str()
		if err != nil {
			return v, err
		}
		p.space()
		if p.peek() != ':' {
			return v, p.errorf("want a colon")
		}
		p.pos++
		p.space()
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.keys = append(v.keys, key)
		v.items = append(v.items, item)
	}
	return v, p.close('}')
}

func (p *treeParser) array() (value, error) {
	v := value{kind: kindArray}
	for p.next('[', ']', len(v.items) == 0) {
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
	}
	return v, p.close(']')
}

// next steps over the opening or a comma and tells whether an element follows.
func (p *treeParser) next(opening, closing byte, first bool) bool {
	p.space()
	if first && p.peek() == opening {
		p.pos++
		p.space()
		return p.peek() != closing
	}
	if first || p.peek() != ',' {
		return false
	}
	p.pos++
	p.space()
	return true
}

func (p *treeParser) close(c byte) error {
	if p.peek() != c {
		return p.errorf("want %q", c)
	}
	p.pos++
	return nil
}

func (p *treeParser) str() (string, error) {
	if p.peek() != '"' {
		return "", p.errorf("want a string")
	}
	p.pos++
	start := p.pos
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case '"':
			s := string(p.data[start:p.pos])
			p.pos++
			return s, nil
		case '\\':
			return p.escaped(start)
		}
		p.pos++
	}
	return "", p.errorf("string without an end")
}

// escaped reads on in a string that has an escape at p.pos.
func (p *treeParser) escaped(start int) (string, error) {
	buf := append(make([]byte, 0, 2*(p.pos-start)+64), p.data[start:p.pos]...)
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		p.pos++
		switch c {
		case '"':
			return string(buf), nil
		case '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			buf = utf8.AppendRune(buf, r)
		default:
			buf = append(buf, c)
		}
	}
	return "", p.errorf("string without an end")
}

func (p *treeParser) escape() (rune, error) {
	c := p.peek()
	p.pos++
	switch c {
	case 'n':
		return '\n', nil
	case 't':
		return '\t', nil
	case 'r':
		return '\r', nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case '"', '\\', '/':
		return rune(c), nil
	case 'u':
		return p.unicode()
	}
	return 0, p.errorf("unknown escape %q", c)
}

func (p *treeParser) unicode() (rune, error) {
	r, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if p.pos+1 < len(p.data) && p.data[p.pos] == '\\' && p.data[p.pos+1] == 'u' {
		p.pos += 2
		low, err := p.hex4()
		return utf16.DecodeRune(r, low), err
	}
	return utf8.RuneError, nil
}

func (p *treeParser) hex4() (rune, error) {
	if p.pos+4 > len(p.data) {
		return 0, p.errorf("short \\u escape")
	}
	n, err := strconv.ParseUint(string(p.data[p.pos:p.pos+4]), 16, 32)
	p.pos += 4
	return rune(n), err
}
