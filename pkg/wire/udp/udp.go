//go:build linux

// Package udp is the datapath that every Pod has: one UDP socket, which also carries the
// control messages. Frames are cut into datagrams and put together again here.
package udp

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"golang.org/x/sys/unix"
)

// Config is what a Path needs.
type Config struct {
	Port int
	// Offload uses UDP segmentation where the kernel has it.
	Offload bool
	Log     *slog.Logger
	Drops   *drop.Counters
	// Legs is held while frames are written to legs.
	Legs *sync.Mutex
	Now  func() time.Duration
	// Control gets the datagrams of the control protocol.
	Control func(from netip.AddrPort, b []byte)
	// TooBig is called when the kernel rejects a datagram for its size: the
	// underlay's MTU became smaller.
	TooBig func()
}

// Path is the wire's UDP socket. It carries the control protocol, and the frames
// of every wire that no other datapath carries.
type Path struct {
	Config
	Sock    *Socket
	poll    *datapath.Poller
	inbox   datapath.Pool
	gso     atomic.Bool
	overrun atomic.Uint32
	table   atomic.Pointer[map[uint32]*Session]
}

// Session is a session and the wires that its peer shares with this Pod.
type Session struct {
	*proto.Session
	Wires map[uint32]*Wire
}

// Wire is the end of a wire as udp carries it.
type Wire struct {
	*datapath.End
	Path    atomic.Pointer[Route] // nil without a peer
	FrameNo atomic.Uint32

	// Of the receiver:
	asm       assembler
	rxSession *proto.Session
}

// Open opens a Path in the caller's network namespace.
func Open(c Config) (*Path, error) {
	sock, err := OpenSocket(c.Port, c.Offload)
	if err != nil {
		return nil, err
	}
	u := &Path{Config: c, Sock: sock, inbox: datapath.NewPool()}
	u.gso.Store(sock.gso)
	u.table.Store(&map[uint32]*Session{})
	return u, nil
}

// Start has the workers of poll read the socket.
func (u *Path) Start(poll *datapath.Poller) error {
	u.poll = poll
	return poll.Add(&newReceiver(u).src)
}

// Admit has the kernel drop the datagrams of strangers, see Socket.admit.
func (u *Path) Admit(tag uint64, prefix uint16) error { return u.Sock.admit(tag, prefix) }

// Close comes after the workers have ended.
func (u *Path) Close() {
	u.inbox.Close()
	u.Sock.Close()
}

// Send sends one control datagram.
func (u *Path) Send(to netip.AddrPort, b []byte) {
	if err := u.Sock.Send(to, b); err != nil {
		u.Drops.Add(drop.Queue)
	}
}

// Publish replaces the sessions whose frames are taken.
func (u *Path) Publish(table map[uint32]*Session) { u.table.Store(&table) }

func (u *Path) session(id uint32) *Session { return (*u.table.Load())[id] }

// Segments reports whether the kernel cuts datagrams.
func (u *Path) Segments() bool { return u.gso.Load() }

// Overruns is how many datagrams the kernel dropped before the socket was read.
func (u *Path) Overruns() uint32 { return u.overrun.Load() }

// InterfaceMTU asks for the MTU of an interface, 0 if unknown. A socket's ioctl looks
// in the socket's namespace.
func (u *Path) InterfaceMTU(name string) int {
	ifr, err := unix.NewIfreq(name)
	if err != nil || unix.IoctlIfreq(u.Sock.FD, unix.SIOCGIFMTU, ifr) != nil {
		return 0
	}
	return int(ifr.Uint32())
}

// Route sets how the wire's frames reach its peer; nil for no peer.
func (w *Wire) Route(s *proto.Session) {
	if s == nil {
		w.Path.Store(nil)
		return
	}
	next := &Route{Session: s, raw: datapath.ToRaw(*s.Addr.Load()), fragSize: proto.FragmentSize(s.MTU.Current, s.IPHeader(), s.AEAD)}
	if old := w.Path.Load(); old == nil || *old != *next {
		w.Path.Store(next)
	}
}

// Frame sends a frame to the peer, by m's sender. It must stay until m.Flush.
func (w *Wire) Frame(m *datapath.Mover, vnet, frame []byte) {
	p := w.Path.Load()
	if p == nil {
		w.Drops.Add(drop.NoPeer)
		return
	}
	m.Send.(*sender).frame(w, p, vnet, frame)
}
