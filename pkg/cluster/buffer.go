package cluster

import (
	"bytes"
	"sync"
)

// Buffer holds the output of a command, up to a limit. It can be read while a command that
// was given up still writes.
type Buffer struct {
	// Limit is the largest number of bytes, 0 for any.
	Limit int

	mu       sync.Mutex
	text     bytes.Buffer
	exceeded bool
}

// Write keeps what fits.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	keep := p
	if b.Limit > 0 {
		keep = p[:min(len(p), max(0, b.Limit-b.text.Len()))]
	}
	b.exceeded = b.exceeded || len(keep) < len(p)
	b.text.Write(keep)
	return len(p), nil
}

// String returns what was kept.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Exceeded reports whether more was written than fits.
func (b *Buffer) Exceeded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.exceeded
}
