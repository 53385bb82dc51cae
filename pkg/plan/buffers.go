package plan

import (
	"bytes"
	"errors"
	"strings"
)

// boundedBuffer keeps what is written up to a limit, and calls full once when
// there is more. It has no ReadFrom, which would go round the limit.
type boundedBuffer struct {
	kept       bytes.Buffer
	limit      int
	overflowed bool
	full       func()
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.overflowed {
		return 0, errors.New("too much output")
	}
	if b.kept.Len()+len(p) > b.limit {
		b.overflowed = true
		b.full()
		return 0, errors.New("too much output")
	}
	return b.kept.Write(p)
}

// tailBuffer keeps the end of what is written.
type tailBuffer struct {
	data  []byte
	limit int
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	if extra := len(b.data) - b.limit; extra > 0 {
		b.data = append(b.data[:0], b.data[extra:]...)
	}
	return len(p), nil
}

// String is the end of a message: "; it said: ...", "" for nothing.
func (b *tailBuffer) String() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(b.data), "?"))
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
