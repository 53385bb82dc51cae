package render

import "strings"

// appendYAML writes the members of v, an object, as a YAML block at indent. Lists
// stand at the indentation of their key, as kubectl writes them.
func (v *value) appendYAML(b []byte, indent int) []byte {
	for i, key := range v.keys {
		if i > 0 {
			b = appendSpaces(b, indent)
		}
		b = v.items[i].appendMember(appendScalarKey(b, key), indent)
	}
	return b
}

// appendMember writes v after a key at indent, with the line's end.
func (v *value) appendMember(b []byte, indent int) []byte {
	b = append(b, ':')
	switch {
	case v.kind == kindObject && len(v.items) > 0:
		b = appendSpaces(append(b, '\n'), indent+2)
		return v.appendYAML(b, indent+2)
	case v.kind == kindArray && len(v.items) > 0:
		return v.appendSequence(append(b, '\n'), indent)
	}
	return v.appendScalar(append(b, ' '), indent+2)
}

// appendSequence writes the items of v, with their dashes at indent.
func (v *value) appendSequence(b []byte, indent int) []byte {
	for i := range v.items {
		b = append(appendSpaces(b, indent), '-', ' ')
		b = v.items[i].appendItem(b, indent+2)
	}
	return b
}

// appendItem writes v after a dash; what belongs to it is at indent.
func (v *value) appendItem(b []byte, indent int) []byte {
	switch {
	case v.kind == kindObject && len(v.items) > 0:
		return v.appendYAML(b, indent)
	case v.kind == kindArray && len(v.items) > 0:
		b = append(b, '-', ' ')
		b = v.items[0].appendItem(b, indent+2)
		rest := value{kind: kindArray, items: v.items[1:]}
		return rest.appendSequence(b, indent)
	}
	return v.appendScalar(b, indent)
}

// appendScalar writes a scalar or an empty collection with its line's end; the
// lines of a block are at indent.
func (v *value) appendScalar(b []byte, indent int) []byte {
	switch v.kind {
	case kindObject:
		return append(b, "{}\n"...)
	case kindArray:
		return append(b, "[]\n"...)
	case kindString:
		if plain(v.text) {
			b = append(b, v.text...)
			return append(b, '\n')
		}
		if ok, indicator := literalBlock(v.text); ok {
			return appendBlock(b, v.text, indent, indicator)
		}
		return append(appendQuoted(b, v.text), '\n')
	}
	b = append(b, v.text...)
	return append(b, '\n')
}

func appendScalarKey(b []byte, key string) []byte {
	if plain(key) {
		return append(b, key...)
	}
	return appendQuoted(b, key)
}

// appendBlock writes text as a literal block. The chomping indicator says how
// many newlines end it: "-" none, nothing one, "+" all that are there.
func appendBlock(b []byte, text string, indent int, indicator bool) []byte {
	b = append(b, '|')
	if indicator {
		b = append(b, '2')
	}
	body := strings.TrimRight(text, "\n")
	switch len(text) - len(body) {
	case 0:
		b = append(b, '-')
	case 1:
	default:
		b = append(b, '+')
	}
	b = append(b, '\n')
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line != "" {
			b = append(appendSpaces(b, indent), line...)
		}
		b = append(b, '\n')
	}
	return b
}
