// Package markers keeps a block in a text file that belongs to somebody else: the lines
// between two marker lines.
package markers

import "strings"

// Set returns text with a block of that name, in the place where it was, or at the beginning
// or the end if there was none. An empty body removes the block. What is outside stays as it is.
func Set(text, name, body string, first bool) string {
	begin, end := "# BEGIN "+name+"\n", "# END "+name+"\n"
	block := ""
	if body != "" {
		block = begin + strings.TrimRight(body, "\n") + "\n" + end
	}
	before, rest, found := cutLine(text, begin)
	if found {
		if _, after, closed := cutLine(rest, end); closed {
			return before + block + after
		}
		// Its end is gone: only the marker is known to be ours.
		text = before + rest
	}
	switch {
	case block == "":
		return text
	case first:
		return block + text
	case text != "" && !strings.HasSuffix(text, "\n"):
		text += "\n"
	}
	return text + block
}

// cutLine is strings.Cut at a whole line.
func cutLine(text, line string) (before, after string, found bool) {
	if strings.HasPrefix(text, line) {
		return "", text[len(line):], true
	}
	i := strings.Index(text, "\n"+line)
	if i < 0 {
		if strings.HasSuffix(text, "\n"+strings.TrimSuffix(line, "\n")) { // the last line, not ended
			return text[:len(text)-len(line)+1], "", true
		}
		return text, "", false
	}
	return text[:i+1], text[i+1+len(line):], true
}
