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
	unfinished := text != "" && !strings.HasSuffix(text, "\n")
	if unfinished {
		text += "\n"
	}
	text = place(text, begin, end, block, first)
	if unfinished && !(block != "" && strings.HasSuffix(text, block)) {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
}

// place is Set of a text in whole lines.
func place(text, begin, end, block string, first bool) string {
	if before, rest, found := cutLine(text, begin); found {
		if _, after, closed := cutLine(rest, end); closed {
			return before + block + after
		}
		// Its end is gone: only the marker is known to be ours.
		return place(before+rest, begin, end, block, first)
	}
	if first {
		return block + text
	}
	return text + block
}

// cutLine is strings.Cut at a whole line.
func cutLine(text, line string) (before, after string, found bool) {
	if strings.HasPrefix(text, line) {
		return "", text[len(line):], true
	}
	before, after, found = strings.Cut(text, "\n"+line)
	if found {
		before += "\n"
	}
	return before, after, found
}
