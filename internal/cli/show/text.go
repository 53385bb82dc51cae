// Package show writes what a person reads. Names, messages and states come from
// topologies, devices and other tenants' objects; a terminal would obey some of their
// characters. Text from this package cannot move the cursor, change colours,
// set titles or reorder the text next to it.
package show

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns s with the characters escaped that a terminal obeys (C0 and C1
// controls) or that change the order of writing (bidirectional controls): "\u001b",
// which JSON reads as the character itself. Bytes that are not UTF-8 are "\x9b". Line
// breaks and tabs stay.
func Text(s string) string { return escape(s, false) }

// Cell is Text for a part of a line: line breaks and tabs are escaped too.
func Cell(s string) string { return escape(s, true) }

func escape(s string, line bool) string {
	if clean(s, line) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			appendByte(&b, s[0])
		case r == '\n' && line:
			b.WriteString(`\n`)
		case r == '\t' && line:
			b.WriteString(`\t`)
		case obeyed(r) && r != '\n' && r != '\t':
			appendRune(&b, r)
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

// clean reports whether s needs no escape.
func clean(s string, line bool) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && (line || c != '\n' && c != '\t') || c >= 0x7f {
			return s[i] >= utf8.RuneSelf && utf8.ValidString(s[i:]) && !strings.ContainsFunc(s[i:], func(r rune) bool {
				return obeyed(r) && (line || r != '\n' && r != '\t')
			})
		}
	}
	return true
}

// obeyed reports whether r is a C0 or C1 control, a control of the direction of
// writing (UAX #9), or one of Unicode's own line breaks.
func obeyed(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

const hexDigits = "0123456789abcdef"

func appendRune(b *strings.Builder, r rune) {
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(hexDigits[r>>shift&0xf])
	}
}

func appendByte(b *strings.Builder, c byte) {
	b.WriteString(`\x` + string(hexDigits[c>>4]) + strconv.FormatUint(uint64(c&0xf), 16))
}
