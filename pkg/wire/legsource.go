//go:build linux

package wire

import (
	"golang.org/x/sys/unix"
)

// legSource reads what a device sends out of its leg and passes it on.
type legSource struct {
	f     *Fabric
	sock  *legSocket
	drops *dropCounters
	// pass gets each frame; what it gets must not be kept after m.flush.
	pass func(m *mover, vnet, frame []byte)
	src  source
	want int
}

// start has the workers read it.
func (l *legSource) start() error {
	l.src.fd, l.src.drain, l.want = l.sock.fd, l.drain, slots
	return l.f.poll.add(&l.src)
}

// end returns when nobody reads it any more.
func (l *legSource) end() { l.f.poll.remove(&l.src) }

// drain reads a batch.
func (l *legSource) drain(m *mover) bool {
	b, err := l.f.batches.get()
	if err != nil {
		return false
	}
	defer l.f.batches.put(b)
	b.prepare(l.sock.vnet, false, l.want)
	n, e := b.recv(l.sock.fd)
	if n == 0 {
		// ENETDOWN is told once when the leg goes down; the socket lives on.
		return e != 0 && e != unix.EAGAIN
	}
	m.moved = true
	bytes := 0
	for i := range n {
		size := int(b.msgs[i].Len)
		bytes += size
		l.take(m, b, i, size)
	}
	m.flush()
	more := n == b.want
	l.want = wanted(n, bytes)
	return more
}

func (l *legSource) take(m *mover, b *rxBatch, i, size int) {
	if b.msgs[i].Hdr.Flags&unix.MSG_TRUNC != 0 {
		l.drops.add(dropSize)
		return
	}
	if !l.sock.vnet {
		l.pass(m, nil, frameOf(b, i, size, false))
		return
	}
	if size <= vnetHdrLen {
		return
	}
	frame := frameOf(b, i, size-vnetHdrLen, true)
	l.pass(m, b.vnet[i][:vnetHdrLen], frame)
}
