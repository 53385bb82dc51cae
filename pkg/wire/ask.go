//go:build linux

package wire

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/proto"
)

// A process that gets no processor time, as beside devices that boot, says nothing; its
// kernel answers for it all the same. So a peer that is silent is asked for by TCP, at a
// port that its process listens at: the kernel takes the connection while the process is
// there, refuses it when it is not, and nobody answers for a Pod that is gone.
const (
	// askTimeout ends before the peer would be lost.
	askTimeout = proto.LostAfter - proto.SilentAfter - 10*time.Millisecond
	askLate    = 50 * time.Millisecond
)

// ask asks for a session's peer. It is called by the engine, under the lock.
func (f *Fabric) ask(s *proto.Session) {
	to := netip.AddrPortFrom(s.Addr.Load().Addr().Unmap(), uint16(f.opt.AskPort))
	f.running.Go(func() {
		began := time.Now()
		there := f.ns.enter() == nil && f.answers(to)
		// One that comes late did so because this process had no time either.
		known := there || time.Since(began) < askTimeout+askLate
		f.mu.Lock()
		f.eng.Answered(s, there, known)
		f.mu.Unlock()
		poke(f.ticks)
	})
}

// answers tells whether a connection is taken.
func (f *Fabric) answers(to netip.AddrPort) bool {
	ctx, cancel := context.WithTimeout(f.ctx, askTimeout)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return false
	}
	_ = c.(*net.TCPConn).SetLinger(0) // nothing is to be said, nor remembered
	c.Close()
	return true
}
