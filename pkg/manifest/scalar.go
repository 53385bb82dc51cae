package manifest

import (
	"bytes"
	"unicode/utf8"
)

// appendQuoted writes s in double quotes, escaped so that JSON and every YAML
// version read the same string.
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

// printable tells whether r may stand in YAML as it is and is no line break:
// YAML 1.1 counts U+0085, U+2028 and U+2029 as such.
func printable(r rune) bool {
	switch {
	case r < 0xa0:
		return r >= 0x20 && r < 0x7f
	case r == 0x2028 || r == 0x2029 || r == 0xfeff:
		return false
	}
	return r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000
}

// plain tells whether s can stand without quotes and is read as the same string
// by YAML 1.1 and 1.2. It errs on the side of quotes.
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

// letterOutsideNumbers tells whether s has a letter that no number (binary,
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

// dottedQuad tells whether s is digits with three dots: an IPv4 address.
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

// reserved tells whether YAML 1.1 or 1.2 reads the word as a bool or null.
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

// literalBlock tells whether s can be written as a "|" block, and whether the
// block needs an indentation indicator.
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
