//go:build linux

package wire

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// receiver reads the underlay socket: control datagrams go to the engine, frames
// to the legs. Whole frames and the fragments of a frame that come in order are
// written to the leg straight from where the kernel put them.
type receiver struct {
	f       *Fabric
	del     *deliverer
	pool    partialPool
	waiting map[*wireEnd]bool // have incomplete frames
	done    []*partial        // may be put back after the next flush
	cur     gather
	want    int
	frames  bool // there were some in this batch
	src     source
}

// gather is a frame whose fragments have come in order so far: they are already
// pieces of the deliverer's last message.
type gather struct {
	w    *wireEnd
	leg  *legOut
	h    dataHeader
	next int // index of the next fragment
	last int
	n    int // deliverer's position before the frame, to take it back
	niov int
	part [64 + 8][]byte
}

func newReceiver(f *Fabric) *receiver {
	r := &receiver{f: f, del: newDeliverer(), waiting: map[*wireEnd]bool{}, want: slots}
	r.src.fd, r.src.drain = f.sock.fd, r.drain
	f.poll.expire = func(m *mover) {
		if r.src.take() {
			r.expire()
			f.poll.serve(&r.src, m, false)
		}
	}
	return r
}

// drain reads a batch.
func (r *receiver) drain(m *mover) bool {
	b, err := r.f.inbox.get()
	if err != nil {
		return false
	}
	defer r.f.inbox.put(b)
	b.prepare(false, true, r.want)
	n, _ := b.recv(r.f.sock.fd)
	if n == 0 {
		return false
	}
	r.f.rxMu.Lock()
	bytes := r.process(b, n)
	r.f.rxMu.Unlock()
	m.moved = m.moved || r.frames
	r.frames = false
	r.want = wanted(n, bytes)
	r.f.poll.waiting.Store(len(r.waiting) > 0)
	return n == b.want
}

// process takes a batch; what it holds is written to the legs when it returns.
func (r *receiver) process(b *rxBatch, n int) int {
	bytes := 0
	for i := range n {
		size := int(b.msgs[i].Len)
		bytes += size
		if b.msgs[i].Hdr.Flags&unix.MSG_TRUNC != 0 {
			r.f.drops.add(dropMalformed)
			continue
		}
		if c := b.cmsg(i, unix.SOL_SOCKET, unix.SO_RXQ_OVFL); len(c) >= 4 {
			r.f.overrun.Store(binary.NativeEndian.Uint32(c))
		}
		part := size
		if c := b.cmsg(i, unix.IPPROTO_UDP, unix.UDP_GRO); len(c) >= 4 {
			part = int(binary.NativeEndian.Uint32(c))
		}
		r.message(b.slot(i)[:size], part, &b.names[i])
	}
	r.giveUpGather()
	r.flush()
	return bytes
}

func (r *receiver) flush() {
	r.del.flush()
	for _, p := range r.done {
		r.pool.put(p)
	}
	r.done = r.done[:0]
}

// message takes one or, where the kernel merged them, several datagrams of one
// sender, each part bytes long but the last.
func (r *receiver) message(b []byte, part int, name *rawAddr) {
	var s *session
	for len(b) > 0 && part > 0 {
		d := b[:min(part, len(b))]
		b = b[len(d):]
		if len(d) < prefixLen || d[0]>>4 != protoVersion {
			r.f.drops.add(dropMalformed)
			continue
		}
		if d[0] != typeByte(msgData) {
			r.f.control(fromRaw(name), d)
			continue
		}
		id := binary.BigEndian.Uint32(d[4:])
		if s == nil || s.id != id {
			if s = r.f.session(id); s == nil {
				r.f.drops.add(dropSession)
				continue
			}
			if fromRaw(name) != *s.addr.Load() {
				s = nil
				r.f.drops.add(dropAddress)
				continue
			}
		}
		r.data(s, d)
	}
}

// data takes one data datagram from the address of a session's peer.
func (r *receiver) data(s *session, d []byte) {
	overhead := 0
	if s.aead {
		overhead = aeadTagLen
	} else if binary.BigEndian.Uint64(d[8:]) != s.rx.token {
		r.f.drops.add(dropToken)
		return
	}
	var h dataHeader
	if !h.parse(d, overhead) {
		r.f.drops.add(dropMalformed)
		return
	}
	if s.aead && !r.unseal(s, &h, d) {
		return
	}
	if !s.heardRaw.Load() {
		s.heardRaw.Store(true)
	}
	r.frames = true
	payload := d[dataHeaderLen : len(d)-overhead]
	g := &r.cur
	if g.w != nil {
		if h.index == uint16(g.next) && h.frame == g.h.frame && h.wire == g.h.wire && h.length == g.h.length && h.fragSize == g.h.fragSize {
			r.extend(payload)
			return
		}
		r.giveUpGather()
	}
	w := s.wire(h.wire)
	if w == nil {
		r.f.drops.add(dropWire)
		return
	}
	if w.rxSession != s {
		r.adopt(w, s)
	}
	leg := w.out.Load()
	if leg == nil {
		w.drops.add(dropDown)
		return
	}
	if h.flags&flagVnet != 0 && (h.length <= vnetHdrLen || h.fragSize <= vnetHdrLen) {
		r.f.drops.add(dropMalformed)
		return
	}
	switch {
	case h.whole():
		if !w.asm.whole(h.frame) {
			w.drops.add(dropDuplicate)
			return
		}
		r.count(w, &h)
		r.del.frame(leg, payload, h.flags&flagVnet != 0)
	case h.index == 0 && !leg.plain && leg.sock.vnet && len(w.asm.partials) == 0 && h.fragments() <= len(g.part) && !w.asm.window.seen(w.asm.window.unwrap(h.frame)):
		r.begin(w, leg, &h, payload)
	default:
		r.fragment(w, &h, payload)
	}
}

func (r *receiver) unseal(s *session, h *dataHeader, d []byte) bool {
	if s.sealed.seen(h.token) {
		r.f.drops.add(dropReplay)
		return false
	}
	nonce := aeadNonce(h.token)
	if _, err := s.rx.aead.Open(d[dataHeaderLen:dataHeaderLen], nonce[:], d[dataHeaderLen:], d[:dataHeaderLen]); err != nil {
		r.f.drops.add(dropForged)
		return false
	}
	s.sealed.accept(h.token)
	return true
}

// begin starts a frame in the deliverer's batch.
func (r *receiver) begin(w *wireEnd, leg *legOut, h *dataHeader, payload []byte) {
	r.del.open(leg, h.fragments()+1)
	g := &r.cur
	g.w, g.leg, g.h, g.next, g.last = w, leg, *h, 1, h.fragments()-1
	g.n, g.niov = r.del.out.n-1, r.del.out.niov
	g.part[0] = payload
	if h.flags&flagVnet == 0 {
		r.del.out.piece(r.del.none[:])
	}
	r.del.out.piece(payload)
}

func (r *receiver) extend(payload []byte) {
	g := &r.cur
	r.del.out.piece(payload)
	g.part[g.next] = payload
	g.next++
	if g.next > g.last {
		w := g.w
		g.w = nil
		w.asm.whole(g.h.frame)
		r.count(w, &g.h)
	}
}

// giveUpGather moves an unfinished frame from the batch to where frames wait.
func (r *receiver) giveUpGather() {
	g := &r.cur
	if g.w == nil {
		return
	}
	w := g.w
	g.w = nil
	r.del.out.n, r.del.out.niov = g.n, g.niov
	for i := range g.next {
		h := g.h
		h.index = uint16(i)
		r.fragment(w, &h, g.part[i])
	}
}

func (r *receiver) fragment(w *wireEnd, h *dataHeader, payload []byte) {
	if !w.asm.add(h, payload, r.f.now()) {
		w.drops.add(dropDuplicate)
	}
	if len(w.asm.partials) > 0 {
		r.waiting[w] = true
	} else {
		delete(r.waiting, w)
	}
}

// adopt makes the assembler of a wire serve a session.
func (r *receiver) adopt(w *wireEnd, s *session) {
	if w.asm.pool == nil {
		w.asm.pool = &r.pool
		w.asm.deliver = func(p *partial) { r.assembled(w, p) }
		w.asm.salvage = func(p *partial) { r.salvage(w, p) }
	}
	w.asm.reset()
	delete(r.waiting, w)
	w.rxSession = s
}

func (r *receiver) assembled(w *wireEnd, p *partial) {
	r.done = append(r.done, p)
	leg := w.out.Load()
	if leg == nil {
		w.drops.add(dropDown)
		return
	}
	r.count(w, &dataHeader{length: p.length})
	r.del.frame(leg, p.buf[:p.length], p.flags&flagVnet != 0)
}

// salvage delivers what is there of a frame that is given up.
func (r *receiver) salvage(w *wireEnd, p *partial) {
	r.done = append(r.done, p)
	w.drops.add(dropIncomplete)
	leg := w.out.Load()
	if leg == nil {
		return
	}
	salvageSuper(p, func(v vnetHdr, header, payload []byte) {
		vnet := make([]byte, vnetHdrLen)
		v.put(vnet)
		w.rxFrames.Add(1)
		w.rxBytes.Add(uint64(len(header) + len(payload)))
		r.del.parts(leg, vnet, header, payload)
		r.del.copies = append(r.del.copies, vnet, header)
	})
}

// expire gives up frames whose time is over. The receiver must be the caller's.
func (r *receiver) expire() {
	r.f.rxMu.Lock()
	defer r.f.rxMu.Unlock()
	now := r.f.now()
	for w := range r.waiting {
		if !w.asm.expire(now) {
			delete(r.waiting, w)
		}
	}
	r.flush()
	r.f.poll.waiting.Store(len(r.waiting) > 0)
}

func (r *receiver) count(w *wireEnd, h *dataHeader) {
	w.rxFrames.Add(1)
	w.rxBytes.Add(uint64(h.length))
}
