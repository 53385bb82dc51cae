package forward

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// A local sender is forgotten when it has been quiet for udpIdle. There are at most
// maxSenders; the datagrams of others are dropped.
const (
	udpIdle    = 2 * time.Minute
	maxSenders = 256
	queued     = 64 // datagrams of a sender while its connection is opened
)

// UDP passes on datagrams until ctx is done, and closes the socket. Each local sender has a
// connection of its own, so that answers come back to it.
func UDP(ctx context.Context, socket net.PacketConn, dial Dial, e Events) {
	u := &udp{ctx: ctx, socket: socket, dial: dial, events: e, senders: map[netip.AddrPort]*sender{}}
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	defer u.group.Wait()
	defer socket.Close()
	buffer := make([]byte, tunnel.MaxDatagram)
	for {
		n, from, err := socket.ReadFrom(buffer)
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // Windows reports ICMP errors of earlier answers
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if a, ok := from.(*net.UDPAddr); ok {
			u.pass(a.AddrPort(), append([]byte(nil), buffer[:n]...))
		}
	}
}

type udp struct {
	ctx    context.Context
	socket net.PacketConn
	dial   Dial
	events Events
	group  sync.WaitGroup

	mu      sync.Mutex
	senders map[netip.AddrPort]*sender
}

type sender struct{ queue chan []byte }

// pass gives a datagram to its sender's connection. One that does not fit is dropped, as
// networks do.
func (u *udp) pass(from netip.AddrPort, datagram []byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.senders[from]
	if s == nil {
		if len(u.senders) >= maxSenders {
			return
		}
		s = &sender{make(chan []byte, queued)}
		u.senders[from] = s
		u.group.Go(func() {
			u.serve(from, s)
			u.mu.Lock()
			defer u.mu.Unlock()
			delete(u.senders, from)
		})
	}
	select {
	case s.queue <- datagram:
	default:
	}
}

func (u *udp) serve(from netip.AddrPort, s *sender) {
	node, err := u.dial(u.ctx, nil)
	if err != nil {
		if u.ctx.Err() == nil {
			u.events.Failed(err)
		}
		return
	}
	defer node.Close()
	u.events.Open(1)
	defer u.events.Open(-1)
	ctx, cancel := context.WithCancel(u.ctx)
	defer cancel()
	heard := make(chan struct{}, 1)
	u.group.Go(func() {
		defer cancel()
		u.answers(from, node, heard)
	})
	quiet := time.NewTimer(udpIdle)
	defer quiet.Stop()
	for {
		select {
		case datagram := <-s.queue:
			if _, err := node.Write(datagram); err != nil {
				return
			}
		case <-heard:
		case <-quiet.C:
			return
		case <-ctx.Done():
			return
		}
		quiet.Reset(udpIdle)
	}
}

// answers passes datagrams of the node back.
func (u *udp) answers(to netip.AddrPort, node net.Conn, heard chan<- struct{}) {
	buffer := make([]byte, tunnel.MaxDatagram)
	for {
		n, err := node.Read(buffer)
		if err != nil {
			return
		}
		select {
		case heard <- struct{}{}:
		default:
		}
		_, _ = u.socket.WriteTo(buffer[:n], net.UDPAddrFromAddrPort(to))
	}
}
