package plan

import "strings"

// endsBuffer keeps the beginning and the end of what is written, half of limit each: a
// crash explains itself at the beginning, most other failures at the end.
type endsBuffer struct {
	head, tail []byte
	limit      int
	cut        bool
}

func (b *endsBuffer) Write(p []byte) (int, error) {
	n := len(p)
	half := b.limit / 2
	if room := half - len(b.head); room > 0 {
		b.head = append(b.head, p[:min(room, len(p))]...)
		p = p[min(room, len(p)):]
	}
	b.tail = append(b.tail, p...)
	if extra := len(b.tail) - half; extra > 0 {
		b.tail = append(b.tail[:0], b.tail[extra:]...)
		b.cut = true
	}
	return n, nil
}

// String returns the end of a message, "; it said: ...", or "" if nothing was written.
func (b *endsBuffer) String() string {
	between := ""
	if b.cut {
		between = "\n[...]\n"
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(b.head)+between+string(b.tail), "?"))
	if text == "" {
		return ""
	}
	return "; it said: " + text
}

// clip shortens a text that a planner program wrote, for messages.
func clip(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
