package udp

import (
	"slices"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
)

const (
	// partialsPerWire bounds the frames of a wire that wait for fragments.
	partialsPerWire = 4
	// PartialsTotal bounds them over all wires: 64 KiB each.
	PartialsTotal = 48
	// partialLife is how long a frame waits for its fragments.
	partialLife = 100 * time.Millisecond
	// reorderFrames is how many later frames may overtake an incomplete one
	// before it is given up.
	reorderFrames = 2
)

// partial is a frame of which some fragments are there.
type partial struct {
	number   uint64 // frame number, unwrapped
	flags    uint8
	length   uint32
	fragSize uint16
	missing  int
	have     []uint64 // one bit a fragment
	buf      []byte
	born     time.Duration
}

func (p *partial) has(i int) bool { return p.have[i/64]&(1<<(i%64)) != 0 }

func (p *partial) set(i int) {
	if !p.has(i) {
		p.have[i/64] |= 1 << (i % 64)
		p.missing--
	}
}

// haveBytes reports whether bytes [lo, hi) of the frame have arrived.
func (p *partial) haveBytes(lo, hi int) bool {
	for i := lo / int(p.fragSize); i <= (hi-1)/int(p.fragSize); i++ {
		if !p.has(i) {
			return false
		}
	}
	return true
}

// partialPool lends the buffers of partial frames, a bounded number of them.
type partialPool struct {
	free []*partial
	used int
}

func (pool *partialPool) get(length int) *partial {
	if pool.used >= PartialsTotal {
		return nil
	}
	pool.used++
	if n := len(pool.free); n > 0 {
		p := pool.free[n-1]
		pool.free = pool.free[:n-1]
		p.buf = p.buf[:length]
		return p
	}
	return &partial{buf: make([]byte, length, proto.MaxFrame)}
}

// put takes a buffer back; few are kept.
func (pool *partialPool) put(p *partial) {
	pool.used--
	if len(pool.free) < 4 {
		pool.free = append(pool.free, p)
	}
}

// assembler puts the frames of one wire in one session together. It is used by
// one goroutine.
type assembler struct {
	pool     *partialPool
	window   proto.Window // of frames that were delivered or given up
	partials []*partial
	// deliver gets a whole frame; salvage one that is given up. The partial is
	// the callee's, who puts it back into the pool.
	deliver func(p *partial)
	salvage func(p *partial)
}

// whole records a frame that arrived in one piece, or in order, and reports whether it is
// new.
func (a *assembler) whole(frame uint32) bool {
	n := a.window.Unwrap(frame)
	if !a.window.Accept(n) {
		return false
	}
	if len(a.partials) > 0 {
		a.overtaken(n)
	}
	return true
}

// overtaken gives up the frames that too many later ones have overtaken.
func (a *assembler) overtaken(n uint64) {
	for len(a.partials) > 0 && a.partials[0].number+reorderFrames <= n {
		a.giveUp(0)
	}
}

// add adds a fragment, whose header h must agree with part. It reports whether the fragment
// was needed.
func (a *assembler) add(h *proto.DataHeader, part []byte, now time.Duration) bool {
	n := a.window.Unwrap(h.Frame)
	if a.window.Seen(n) {
		return false
	}
	at := 0
	for at < len(a.partials) && a.partials[at].number < n {
		at++
	}
	var p *partial
	if at < len(a.partials) && a.partials[at].number == n {
		p = a.partials[at]
		if p.length != h.Length || p.fragSize != h.FragSize || p.flags != h.Flags || p.has(int(h.Index)) {
			return false
		}
	} else if p = a.insert(n, h, at, now); p == nil {
		return false
	}
	copy(p.buf[int(h.Index)*int(h.FragSize):], part)
	p.set(int(h.Index))
	if p.missing == 0 {
		a.window.Accept(n)
		a.overtaken(n)
		i := slices.Index(a.partials, p)
		a.partials = slices.Delete(a.partials, i, i+1)
		a.deliver(p)
	}
	return true
}

// insert makes room for a new partial frame, at the cost of the oldest.
func (a *assembler) insert(n uint64, h *proto.DataHeader, at int, now time.Duration) *partial {
	if len(a.partials) >= partialsPerWire {
		if at == 0 {
			return nil // older than all that wait
		}
		a.giveUp(0)
		at--
	}
	p := a.pool.get(int(h.Length))
	if p == nil {
		return nil
	}
	frags := h.Fragments()
	words := (frags + 63) / 64
	if cap(p.have) < words {
		p.have = make([]uint64, words)
	}
	p.have = p.have[:words]
	clear(p.have)
	p.number, p.flags, p.length, p.fragSize, p.missing, p.born = n, h.Flags, h.Length, h.FragSize, frags, now
	a.partials = slices.Insert(a.partials, at, p)
	return p
}

// expire gives up frames that are too old, and reports whether others still wait.
func (a *assembler) expire(now time.Duration) bool {
	for i := 0; i < len(a.partials); {
		if now-a.partials[i].born >= partialLife {
			a.giveUp(i)
		} else {
			i++
		}
	}
	return len(a.partials) > 0
}

// reset forgets all, for a new session.
func (a *assembler) reset() {
	for len(a.partials) > 0 {
		a.pool.put(a.partials[0])
		a.partials = a.partials[1:]
	}
	a.partials, a.window = nil, proto.Window{}
}

func (a *assembler) giveUp(i int) {
	p := a.partials[i]
	a.window.Accept(p.number)
	a.partials = slices.Delete(a.partials, i, i+1)
	a.salvage(p)
}

// salvageSuper finds the segments of an incomplete TCP or UDP super-frame that
// are there whole and calls emit for every run of them, so that a lost datagram
// costs the segments it was part of and not 64 KB.
func salvageSuper(p *partial, emit func(vnet virtio.Header, header, payload []byte)) {
	if p.flags&proto.FlagVirtio == 0 || !p.has(0) || p.length <= virtio.HeaderLen || p.fragSize <= virtio.HeaderLen {
		return
	}
	var vnet virtio.Header
	vnet.Parse(p.buf)
	if !vnet.GSO() {
		return
	}
	var s virtio.SuperFrame
	frame := p.buf[virtio.HeaderLen:p.length]
	if s.Parse(vnet, frame[:min(len(frame), int(p.fragSize)-virtio.HeaderLen)], len(frame)) != nil {
		return
	}
	there := func(i int) bool {
		lo, hi := s.Payload(i, i+1)
		base := virtio.HeaderLen + len(s.Header)
		return p.haveBytes(base+lo, base+hi)
	}
	for i, n := 0, s.Segments(); i < n; i++ {
		if !there(i) {
			continue
		}
		from := i
		for i < n && there(i) {
			i++
		}
		header := make([]byte, len(s.Header))
		v := s.Slice(header, from, i)
		lo, hi := s.Payload(from, i)
		emit(v, header, frame[len(s.Header):][lo:hi])
	}
}
