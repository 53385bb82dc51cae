package tunnel

import (
	"encoding/binary"
	"io"
	"runtime"
	"sync"
	"time"
)

// batchSize is how many bytes may wait for one write.
const batchSize = 256 << 10

// While much is written, a write of less than fullWrite bytes waits for more. Container
// runtimes, kubelets and the API server copy as many bytes at once; a small piece costs them
// as much. "Much" is a write of muchWritten bytes not longer ago than lately, so that neither
// a request nor its answer waits.
const (
	fullWrite   = 32 << 10
	muchWritten = 8 << 10
	lately      = time.Millisecond
	gather      = 200 * time.Microsecond
)

// emptyTime is how long a frame that can wait does so.
const emptyTime = time.Millisecond

// canWait reports whether a frame of smux can wait for one with data: it opens a stream, and the
// request follows, or ends one, or announces room that is not needed yet. The second byte of a
// frame is its command; that of an update is followed by how many bytes of its stream were read,
// at byte 8. While much is read, the other end needs the room soon.
func canWait(frame []byte) bool {
	const header, data, update = 8, 2, 4
	if len(frame) < header || frame[1] == data {
		return false
	}
	return frame[1] != update || len(frame) >= header+4 && binary.LittleEndian.Uint32(frame[header:]) < fullWrite
}

// batch is a stream whose small writes become few large ones: each write to an exec stream
// passes through half a dozen processes. Write returns at once unless batchSize bytes wait.
type batch struct {
	io.ReadWriteCloser

	mu      sync.Mutex
	changed sync.Cond
	waiting []byte
	due     bool // what waits is to be written
	later   bool // and it will be, in emptyTime at the latest
	spare   []byte
	err     error

	wrote  time.Time // when the last write ended
	length int       // how long it was
}

func newBatch(stream io.ReadWriteCloser) *batch {
	b := &batch{ReadWriteCloser: stream}
	b.changed.L = &b.mu
	go b.run()
	return b
}

func (b *batch) Write(p []byte) (int, error) { return b.WriteBuffers([][]byte{p}) }

// WriteBuffers writes several pieces as one; smux uses it to save a copy.
func (b *batch) WriteBuffers(pieces [][]byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) >= batchSize && b.err == nil {
		b.changed.Wait()
	}
	if b.err != nil {
		return 0, b.err
	}
	for _, p := range pieces {
		b.waiting = append(b.waiting, p...)
		n += len(p)
	}
	if !canWait(b.waiting[len(b.waiting)-n:]) {
		b.due = true
	}
	if b.due {
		b.changed.Broadcast()
	} else if !b.later {
		b.later = true
		time.AfterFunc(emptyTime, b.hurry)
	}
	return n, nil
}

// hurry has what waits written.
func (b *batch) hurry() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.later, b.due = false, true
	b.changed.Broadcast()
}

// run writes what waits until the stream fails or is closed.
func (b *batch) run() {
	for {
		next := b.next()
		if next == nil {
			return
		}
		_, err := b.ReadWriteCloser.Write(next)
		b.mu.Lock()
		b.spare, b.wrote, b.length = next[:0], time.Now(), len(next)
		if err != nil && b.err == nil {
			b.err = err
		}
		b.changed.Broadcast()
		b.mu.Unlock()
	}
}

// next waits for bytes and takes all of them. It returns nil at the end.
func (b *batch) next() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for (len(b.waiting) == 0 || !b.due) && b.err == nil {
		b.changed.Wait()
	}
	more := len(b.waiting) < fullWrite && b.length >= muchWritten && time.Since(b.wrote) < lately
	b.mu.Unlock()
	if more {
		time.Sleep(gather)
	} else {
		runtime.Gosched() // a request follows the frame that opens its stream
	}
	b.mu.Lock()
	if b.err != nil {
		return nil
	}
	next := b.waiting
	b.waiting, b.spare, b.due = b.spare, nil, false
	return next
}

// Close ends the stream. Bytes that wait are lost.
func (b *batch) Close() error {
	b.mu.Lock()
	if b.err == nil {
		b.err = io.ErrClosedPipe
	}
	b.changed.Broadcast()
	b.mu.Unlock()
	return b.ReadWriteCloser.Close()
}
