//go:build linux

package wire

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/proto"
)

// A process that gets no processor time, for example while devices boot, sends nothing,
// but its kernel still answers. So the fabric opens a TCP connection to a silent peer, at
// a port that its process listens on. The kernel accepts the connection while the process
// exists and rejects it otherwise. Nothing answers for a deleted Pod.
const (
	// askTimeout ends before the peer would be lost.
	askTimeout = proto.LostAfter - proto.SilentAfter - 10*time.Millisecond
	askLate    = 50 * time.Millisecond
)

// ask finds out whether the process of a session's peer exists. The engine calls it
// under the lock.
func (f *Fabric) ask(s *proto.Session) {
	to := netip.AddrPortFrom(s.Addr.Load().Addr().Unmap(), uint16(f.opt.AskPort))
	f.running.Go(func() {
		began := time.Now()
		there := f.ns.enter() == nil && f.answers(to)
		// A late answer means that this process had no processor time either.
		known := there || time.Since(began) < askTimeout+askLate
		f.mu.Lock()
		f.eng.Answered(s, there, known)
		f.mu.Unlock()
		poke(f.ticks)
	})
}

// answers reports whether a connection is accepted.
func (f *Fabric) answers(to netip.AddrPort) bool {
	ctx, cancel := context.WithTimeout(f.ctx, askTimeout)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return false
	}
	_ = c.(*net.TCPConn).SetLinger(0) // no data follows, and no TIME_WAIT
	c.Close()
	return true
}
