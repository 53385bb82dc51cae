//go:build linux

package udp

import (
	"encoding/binary"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
	"golang.org/x/sys/unix"
)

// receiver reads the underlay socket: control datagrams go to the engine, frames
// to the legs. Whole frames and the fragments of a frame that come in order are
// written to the leg straight from where the kernel put them.
type receiver struct {
	u       *Path
	del     *datapath.Deliverer
	pool    partialPool
	waiting map[*Wire]bool // have incomplete frames
	done    []*partial     // to put back after the next flush
	cur     gather
	want    int
	frames  bool // there were some in this batch
	src     datapath.Source
}

// gather is a frame whose fragments have come in order so far: they are already
// pieces of the deliverer's last message.
type gather struct {
	w    *Wire
	leg  *datapath.Out
	h    proto.DataHeader
	next int // index of the next fragment
	last int
	n    int // deliverer's position before the frame, to take it back
	niov int
	part [64 + 8][]byte
}

func newReceiver(u *Path) *receiver {
	r := &receiver{u: u, del: datapath.NewDeliverer(), waiting: map[*Wire]bool{}, want: datapath.Slots}
	r.src.FD, r.src.Drain = u.Sock.FD, r.drain
	u.poll.Expire = func(m *datapath.Mover) {
		if r.src.Take() {
			r.expire()
			u.poll.Serve(&r.src, m, false)
		}
	}
	return r
}

// drain reads a batch.
func (r *receiver) drain(m *datapath.Mover) bool {
	b, err := r.u.inbox.Get()
	if err != nil {
		return false
	}
	defer r.u.inbox.Put(b)
	b.Prepare(false, true, r.want)
	n, _ := b.Recv(r.u.Sock.FD)
	if n == 0 {
		return false
	}
	r.u.Legs.Lock()
	bytes := r.process(b, n)
	r.u.Legs.Unlock()
	m.Moved = m.Moved || r.frames
	r.frames = false
	r.want = datapath.Wanted(n, bytes)
	r.u.poll.Waiting.Store(len(r.waiting) > 0)
	return n == b.Want
}

// process handles a batch. Its frames are written to the legs when it returns.
func (r *receiver) process(b *datapath.RxBatch, n int) int {
	bytes := 0
	for i := range n {
		size := int(b.Msgs[i].Len)
		bytes += size
		if b.Msgs[i].Hdr.Flags&unix.MSG_TRUNC != 0 {
			r.u.Drops.Add(drop.Malformed)
			continue
		}
		if c := b.Cmsg(i, unix.SOL_SOCKET, unix.SO_RXQ_OVFL); len(c) >= 4 {
			r.u.overrun.Store(binary.NativeEndian.Uint32(c))
		}
		part := size
		if c := b.Cmsg(i, unix.IPPROTO_UDP, unix.UDP_GRO); len(c) >= 4 {
			part = int(binary.NativeEndian.Uint32(c))
		}
		r.message(b.Slot(i)[:size], part, &b.Names[i])
	}
	r.giveUpGather()
	r.Flush()
	return bytes
}

func (r *receiver) Flush() {
	r.del.Flush()
	for _, p := range r.done {
		r.pool.put(p)
	}
	r.done = r.done[:0]
}

// message handles one datagram, or several of one sender that the kernel merged: each is
// part bytes long except the last.
func (r *receiver) message(b []byte, part int, name *datapath.RawAddr) {
	var s *Session
	for len(b) > 0 && part > 0 {
		d := b[:min(part, len(b))]
		b = b[len(d):]
		if len(d) < proto.PrefixLen || d[0]>>4 != proto.ProtoVersion {
			r.u.Drops.Add(drop.Malformed)
			continue
		}
		if d[0] != proto.TypeByte(proto.MsgData) {
			r.u.Control(datapath.FromRaw(name), d)
			continue
		}
		id := binary.BigEndian.Uint32(d[4:])
		if s == nil || s.ID != id {
			if s = r.u.session(id); s == nil {
				r.u.Drops.Add(drop.NoSession)
				continue
			}
			if datapath.FromRaw(name) != *s.Addr.Load() {
				s = nil
				r.u.Drops.Add(drop.Address)
				continue
			}
		}
		r.data(s, d)
	}
}

// data handles one data datagram from the address of a session's peer.
func (r *receiver) data(s *Session, d []byte) {
	overhead := 0
	if s.AEAD {
		overhead = proto.SealLen
	} else if binary.BigEndian.Uint64(d[8:]) != s.RX.Token {
		r.u.Drops.Add(drop.Token)
		return
	}
	var h proto.DataHeader
	if !h.Parse(d, overhead) {
		r.u.Drops.Add(drop.Malformed)
		return
	}
	if s.AEAD && !r.unseal(s.Session, &h, d) {
		return
	}
	if !s.HeardRaw.Load() {
		s.HeardRaw.Store(true)
	}
	r.frames = true
	payload := d[proto.DataHeaderLen : len(d)-overhead]
	g := &r.cur
	if g.w != nil {
		if h.Index == uint16(g.next) && h.Frame == g.h.Frame && h.Wire == g.h.Wire && h.Length == g.h.Length && h.FragSize == g.h.FragSize {
			r.extend(payload)
			return
		}
		r.giveUpGather()
	}
	w := s.Wires[h.Wire]
	if w == nil {
		r.u.Drops.Add(drop.Wire)
		return
	}
	if w.rxSession != s.Session {
		r.adopt(w, s.Session)
	}
	leg := w.Out.Load()
	if leg == nil {
		w.Drops.Add(drop.Down)
		return
	}
	if h.Flags&proto.FlagVirtio != 0 && (h.Length <= virtio.HeaderLen || h.FragSize <= virtio.HeaderLen) {
		r.u.Drops.Add(drop.Malformed)
		return
	}
	switch {
	case h.Whole():
		if !w.asm.whole(h.Frame) {
			w.Drops.Add(drop.Duplicate)
			return
		}
		r.count(w, &h)
		r.del.Frame(leg, payload, h.Flags&proto.FlagVirtio != 0)
	case h.Index == 0 && !leg.Plain && leg.Sock.Virtio && len(w.asm.partials) == 0 && h.Fragments() <= len(g.part) && !w.asm.window.Seen(w.asm.window.Unwrap(h.Frame)):
		r.begin(w, leg, &h, payload)
	default:
		r.fragment(w, &h, payload)
	}
}

func (r *receiver) unseal(s *proto.Session, h *proto.DataHeader, d []byte) bool {
	if s.Sealed.Seen(h.Token) {
		r.u.Drops.Add(drop.Replay)
		return false
	}
	nonce := aeadNonce(h.Token)
	if _, err := s.RX.AEAD.Open(d[proto.DataHeaderLen:proto.DataHeaderLen], nonce[:], d[proto.DataHeaderLen:], d[:proto.DataHeaderLen]); err != nil {
		r.u.Drops.Add(drop.Forged)
		return false
	}
	s.Sealed.Accept(h.Token)
	return true
}

// begin starts a frame in the deliverer's batch.
func (r *receiver) begin(w *Wire, leg *datapath.Out, h *proto.DataHeader, payload []byte) {
	r.del.Open(leg, h.Fragments()+1)
	g := &r.cur
	g.w, g.leg, g.h, g.next, g.last = w, leg, *h, 1, h.Fragments()-1
	g.n, g.niov = r.del.Out.N-1, r.del.Out.Niov
	g.part[0] = payload
	if h.Flags&proto.FlagVirtio == 0 {
		r.del.Out.Piece(r.del.None[:])
	}
	r.del.Out.Piece(payload)
}

func (r *receiver) extend(payload []byte) {
	g := &r.cur
	r.del.Out.Piece(payload)
	g.part[g.next] = payload
	g.next++
	if g.next > g.last {
		w := g.w
		g.w = nil
		w.asm.whole(g.h.Frame)
		r.count(w, &g.h)
	}
}

// giveUpGather moves an incomplete frame from the batch to the assembler.
func (r *receiver) giveUpGather() {
	g := &r.cur
	if g.w == nil {
		return
	}
	w := g.w
	g.w = nil
	r.del.Out.N, r.del.Out.Niov = g.n, g.niov
	for i := range g.next {
		h := g.h
		h.Index = uint16(i)
		r.fragment(w, &h, g.part[i])
	}
}

func (r *receiver) fragment(w *Wire, h *proto.DataHeader, payload []byte) {
	if !w.asm.add(h, payload, r.u.Now()) {
		w.Drops.Add(drop.Duplicate)
	}
	if len(w.asm.partials) > 0 {
		r.waiting[w] = true
	} else {
		delete(r.waiting, w)
	}
}

// adopt resets the assembler of a wire for a session.
func (r *receiver) adopt(w *Wire, s *proto.Session) {
	if w.asm.pool == nil {
		w.asm.pool = &r.pool
		w.asm.deliver = func(p *partial) { r.assembled(w, p) }
		w.asm.salvage = func(p *partial) { r.salvage(w, p) }
	}
	w.asm.reset()
	delete(r.waiting, w)
	w.rxSession = s
}

func (r *receiver) assembled(w *Wire, p *partial) {
	r.done = append(r.done, p)
	leg := w.Out.Load()
	if leg == nil {
		w.Drops.Add(drop.Down)
		return
	}
	r.count(w, &proto.DataHeader{Length: p.length})
	r.del.Frame(leg, p.buf[:p.length], p.flags&proto.FlagVirtio != 0)
}

// salvage delivers the complete segments of a frame that is given up.
func (r *receiver) salvage(w *Wire, p *partial) {
	r.done = append(r.done, p)
	w.Drops.Add(drop.Incomplete)
	leg := w.Out.Load()
	if leg == nil {
		return
	}
	salvageSuper(p, func(v virtio.Header, header, payload []byte) {
		vnet := make([]byte, virtio.HeaderLen)
		v.Put(vnet)
		w.RxFrames.Add(1)
		w.RxBytes.Add(uint64(len(header) + len(payload)))
		r.del.Parts(leg, vnet, header, payload)
		r.del.Copies = append(r.del.Copies, vnet, header)
	})
}

// expire gives up frames that have waited too long. The caller must own the receiver.
func (r *receiver) expire() {
	r.u.Legs.Lock()
	defer r.u.Legs.Unlock()
	now := r.u.Now()
	for w := range r.waiting {
		if !w.asm.expire(now) {
			delete(r.waiting, w)
		}
	}
	r.Flush()
	r.u.poll.Waiting.Store(len(r.waiting) > 0)
}

func (r *receiver) count(w *Wire, h *proto.DataHeader) {
	w.RxFrames.Add(1)
	w.RxBytes.Add(uint64(h.Length))
}
