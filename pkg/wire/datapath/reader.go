//go:build linux

package datapath

import (
	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
	"golang.org/x/sys/unix"
)

// Reader reads what a device sends out of its leg and passes it on.
type Reader struct {
	Poll  *Poller
	Pool  Pool
	Sock  *Socket
	Drops *drop.Counters
	// Pass gets each frame. It must not keep it after m.Flush.
	Pass func(m *Mover, vnet, frame []byte)
	src  Source
	want int
}

// Start has the workers read it.
func (l *Reader) Start() error {
	l.src.FD, l.src.Drain, l.want = l.Sock.fd, l.drain, Slots
	return l.Poll.Add(&l.src)
}

// End returns when nobody reads it any more.
func (l *Reader) End() { l.Poll.remove(&l.src) }

// drain reads a batch.
func (l *Reader) drain(m *Mover) bool {
	b, err := l.Pool.Get()
	if err != nil {
		return false
	}
	defer l.Pool.Put(b)
	b.Prepare(l.Sock.Virtio, false, l.want)
	n, e := b.Recv(l.Sock.fd)
	if n == 0 {
		// ENETDOWN comes once when the leg goes down. The socket remains usable.
		return e != 0 && e != unix.EAGAIN
	}
	m.Moved = true
	bytes := 0
	for i := range n {
		size := int(b.Msgs[i].Len)
		bytes += size
		l.take(m, b, i, size)
	}
	m.Flush()
	more := n == b.Want
	l.want = Wanted(n, bytes)
	return more
}

func (l *Reader) take(m *Mover, b *RxBatch, i, size int) {
	if b.Msgs[i].Hdr.Flags&unix.MSG_TRUNC != 0 {
		l.Drops.Add(drop.Size)
		return
	}
	if !l.Sock.Virtio {
		l.Pass(m, nil, FrameOf(b, i, size, false))
		return
	}
	if size <= virtio.HeaderLen {
		return
	}
	frame := FrameOf(b, i, size-virtio.HeaderLen, true)
	l.Pass(m, b.vnet[i][:virtio.HeaderLen], frame)
}
