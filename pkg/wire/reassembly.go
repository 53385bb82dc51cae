package wire

import (
	"slices"
	"time"
)

const (
	// partialsPerWire bounds the frames of a wire that wait for fragments.
	partialsPerWire = 4
	// partialsTotal bounds them over all wires: 64 KiB each.
	partialsTotal = 48
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

// haveBytes tells whether bytes [lo, hi) of the frame are there.
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
	if pool.used >= partialsTotal {
		return nil
	}
	pool.used++
	if n := len(pool.free); n > 0 {
		p := pool.free[n-1]
		pool.free = pool.free[:n-1]
		p.buf = p.buf[:length]
		return p
	}
	return &partial{buf: make([]byte, length, maxFrame)}
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
	window   window // of frames that were delivered or given up
	partials []*partial
	// deliver gets a whole frame; salvage one that is given up. The partial is
	// the callee's, who puts it back into the pool.
	deliver func(p *partial)
	salvage func(p *partial)
}

// whole notes that a frame came in one piece, or that all its pieces came in
// order, and reports whether it is new.
func (a *assembler) whole(frame uint32) bool {
	n := a.window.unwrap(frame)
	if !a.window.accept(n) {
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

// add takes a fragment; h is known to agree with part. It reports whether the
// fragment was of use.
func (a *assembler) add(h *dataHeader, part []byte, now time.Duration) bool {
	n := a.window.unwrap(h.frame)
	if a.window.seen(n) {
		return false
	}
	at := 0
	for at < len(a.partials) && a.partials[at].number < n {
		at++
	}
	var p *partial
	if at < len(a.partials) && a.partials[at].number == n {
		p = a.partials[at]
		if p.length != h.length || p.fragSize != h.fragSize || p.flags != h.flags || p.has(int(h.index)) {
			return false
		}
	} else if p = a.insert(n, h, at, now); p == nil {
		return false
	}
	copy(p.buf[int(h.index)*int(h.fragSize):], part)
	p.set(int(h.index))
	if p.missing == 0 {
		a.window.accept(n)
		a.overtaken(n)
		i := slices.Index(a.partials, p)
		a.partials = slices.Delete(a.partials, i, i+1)
		a.deliver(p)
	}
	return true
}

// insert makes room for a new partial frame, at the cost of the oldest.
func (a *assembler) insert(n uint64, h *dataHeader, at int, now time.Duration) *partial {
	if len(a.partials) >= partialsPerWire {
		if at == 0 {
			return nil // older than all that wait
		}
		a.giveUp(0)
		at--
	}
	p := a.pool.get(int(h.length))
	if p == nil {
		return nil
	}
	frags := h.fragments()
	words := (frags + 63) / 64
	if cap(p.have) < words {
		p.have = make([]uint64, words)
	}
	p.have = p.have[:words]
	clear(p.have)
	p.number, p.flags, p.length, p.fragSize, p.missing, p.born = n, h.flags, h.length, h.fragSize, frags, now
	a.partials = slices.Insert(a.partials, at, p)
	return p
}

// expire gives up what is too old and tells whether something still waits.
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
	a.partials, a.window = nil, window{}
}

func (a *assembler) giveUp(i int) {
	p := a.partials[i]
	a.window.accept(p.number)
	a.partials = slices.Delete(a.partials, i, i+1)
	a.salvage(p)
}

// salvageSuper finds the segments of an incomplete TCP or UDP super-frame that
// are there whole and calls emit for every run of them, so that a lost datagram
// costs the segments it was part of and not 64 KB.
func salvageSuper(p *partial, emit func(vnet vnetHdr, header, payload []byte)) {
	if p.flags&flagVnet == 0 || !p.has(0) || p.length <= vnetHdrLen || p.fragSize <= vnetHdrLen {
		return
	}
	var vnet vnetHdr
	vnet.parse(p.buf)
	if !vnet.gso() {
		return
	}
	var s superFrame
	frame := p.buf[vnetHdrLen:p.length]
	if s.parse(vnet, frame[:min(len(frame), int(p.fragSize)-vnetHdrLen)], len(frame)) != nil {
		return
	}
	there := func(i int) bool {
		lo, hi := s.payload(i, i+1)
		base := vnetHdrLen + len(s.header)
		return p.haveBytes(base+lo, base+hi)
	}
	for i, n := 0, s.segments(); i < n; i++ {
		if !there(i) {
			continue
		}
		from := i
		for i < n && there(i) {
			i++
		}
		header := make([]byte, len(s.header))
		v := s.slice(header, from, i)
		lo, hi := s.payload(from, i)
		emit(v, header, frame[len(s.header):][lo:hi])
	}
}
