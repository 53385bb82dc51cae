package capture

import (
	"container/heap"
	"time"
)

// Merger puts the frames of several streams in the order of their times. A stream says by ticks
// up to when it is complete; one that is silent is waited for only so long.
type Merger struct {
	// Emit gets the frames in order.
	Emit    func(stream int, f *Frame)
	pending pending
	streams map[int]*progress
	number  uint64
}

// progress is up to when a stream is complete, and when it said so.
type progress struct {
	until int64
	heard time.Time
}

const (
	// silence is how long a stream is waited for.
	silence = time.Second
	// maxPending bounds the frames that wait.
	maxPending = 1 << 17
)

// Open adds a stream.
func (m *Merger) Open(stream int, now time.Time) {
	if m.streams == nil {
		m.streams = map[int]*progress{}
	}
	m.streams[stream] = &progress{heard: now}
}

// Close removes a stream: nothing more comes of it.
func (m *Merger) Close(stream int, now time.Time) {
	delete(m.streams, stream)
	m.Advance(now)
}

// Add adds a frame, whose time is aligned.
func (m *Merger) Add(stream int, f *Frame, now time.Time) {
	m.number++
	heap.Push(&m.pending, waiting{f, stream, m.number})
	if len(m.pending) > maxPending {
		m.pop()
	}
}

// Tick says that a stream is complete up to a time, which is aligned.
func (m *Merger) Tick(stream int, at int64, now time.Time) {
	if p := m.streams[stream]; p != nil {
		p.until, p.heard = at, now
	}
	m.Advance(now)
}

// Flush emits all that waits.
func (m *Merger) Flush() {
	for len(m.pending) > 0 {
		m.pop()
	}
}

// Advance emits what no stream that still speaks can be before.
func (m *Merger) Advance(now time.Time) {
	until, any := int64(0), false
	for _, p := range m.streams {
		if now.Sub(p.heard) > silence {
			continue
		}
		if !any || p.until < until {
			until, any = p.until, true
		}
	}
	if !any {
		m.Flush()
		return
	}
	for len(m.pending) > 0 && m.pending[0].frame.Time <= until {
		m.pop()
	}
}

func (m *Merger) pop() {
	w := heap.Pop(&m.pending).(waiting)
	m.Emit(w.stream, w.frame)
}

// waiting is a frame with its stream. Frames of one time keep the order in which they came.
type waiting struct {
	frame  *Frame
	stream int
	number uint64
}

type pending []waiting

func (p pending) Len() int { return len(p) }
func (p pending) Less(i, j int) bool {
	if p[i].frame.Time != p[j].frame.Time {
		return p[i].frame.Time < p[j].frame.Time
	}
	return p[i].number < p[j].number
}
func (p pending) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *pending) Push(x any)   { *p = append(*p, x.(waiting)) }
func (p *pending) Pop() any {
	old := *p
	last := old[len(old)-1]
	old[len(old)-1] = waiting{}
	*p = old[:len(old)-1]
	return last
}
