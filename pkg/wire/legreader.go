//go:build linux

package wire

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// legReader takes what a device sends out of its leg and passes it on.
type legReader struct {
	f    *Fabric
	sock *legSocket
	// pass gets each frame; what it gets must not be kept after flush.
	pass  func(vnet, frame []byte)
	flush func()
	drops *dropCounters
	stop  *stopper
	done  sync.WaitGroup
}

func (l *legReader) start() error {
	var err error
	if l.stop, err = newStopper(); err != nil {
		return err
	}
	l.done.Go(l.run)
	return nil
}

// end stops the reader and waits for it.
func (l *legReader) end() {
	l.stop.stop()
	l.done.Wait()
	l.stop.close()
}

func (l *legReader) run() {
	for !l.stop.wait(l.sock.fd, -1) {
		if e := l.drain(); e != 0 {
			// The leg went down or away: ENETDOWN is told once and the socket then
			// waits for it to come back.
			if e != unix.ENETDOWN {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
}

// drain reads what is there.
func (l *legReader) drain() unix.Errno {
	b, err := l.f.batches.get()
	if err != nil {
		return unix.ENOMEM
	}
	defer l.f.batches.put(b)
	b.want = slots
	b.prepare(l.sock.vnet, false)
	for {
		n, e := b.recv(l.sock.fd)
		if e == unix.EAGAIN || n == 0 {
			return 0
		}
		if e != 0 {
			return e
		}
		want, bytes := b.want, 0
		for i := range n {
			size := int(b.msgs[i].Len)
			bytes += size
			l.take(b, i, size)
		}
		l.flush()
		b.adapt(n, bytes)
		if n < want {
			return 0
		}
	}
}

func (l *legReader) take(b *rxBatch, i, size int) {
	if b.msgs[i].Hdr.Flags&unix.MSG_TRUNC != 0 {
		l.drops.add(dropSize)
		return
	}
	if !l.sock.vnet {
		l.pass(nil, frameOf(b, i, size, false))
		return
	}
	if size <= vnetHdrLen {
		return
	}
	frame := frameOf(b, i, size-vnetHdrLen, true)
	l.pass(b.vnet[i][:vnetHdrLen], frame)
}
