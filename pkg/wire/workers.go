//go:build linux

package wire

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// All sockets of the datapath are read by a few workers. One of them, the leader,
// waits for all sockets (epoll, edge-triggered). On little traffic it does all the
// work itself: what comes back at once, as the answer to a frame that it just
// delivered, is read by the thread that is awake anyway, and no other one is
// woken. When it falls behind, another worker leads meanwhile.

const (
	// promoteAfter is how many batches of one socket, without a pause, make the
	// leader let another worker lead. With two processors the other one is taken:
	// by the sender, the receiver or the other Pod.
	promoteAfter    = 2
	promoteAfterTwo = 16
	// expireEvery is how often incomplete frames are looked after, if there are any.
	expireEvery = 50 * time.Millisecond
)

// source is a socket that is read.
type source struct {
	fd int
	// drain reads one batch; it tells whether there may be more.
	drain func(m *mover) bool
	// state keeps a source with one worker at a time.
	state atomic.Int32
}

const (
	sourceIdle  int32 = iota
	sourceBusy        // a worker reads it
	sourceAgain       // and there came more
	sourceEnded
)

// mover is what one goroutine needs to move frames: batches to both sides.
type mover struct {
	send *sender
	del  *deliverer
	// locked tells that rxMu is held, for the legs that del writes to.
	locked bool
	// moved tells that there were frames since the last wait.
	moved  bool
	events [32]unix.EpollEvent
}

func newMover(f *Fabric) *mover { return &mover{send: newSender(f), del: newDeliverer()} }

// hold keeps legs from being closed until flush.
func (m *mover) hold(f *Fabric) {
	if !m.locked {
		f.rxMu.Lock()
		m.locked = true
	}
}

func (m *mover) flush() {
	m.send.flush()
	m.del.flush()
	if m.locked {
		m.send.f.rxMu.Unlock()
		m.locked = false
	}
}

// poller is the sources and their leader.
type poller struct {
	f    *Fabric
	fd   int      // epoll of all sources
	file *os.File // epoll of fd alone, which Go's own poller waits for
	conn syscall.RawConn
	// armed tells that file takes notice of fd; the leader's own.
	armed bool
	lead  sync.Mutex
	// waiting tells that frames are incomplete and expire is to be called.
	waiting atomic.Bool
	expire  func(m *mover)
	// patience is promoteAfter for this machine.
	patience int

	mu      sync.RWMutex
	sources map[int32]*source
}

func newPoller(f *Fabric) (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// Go's own poller waits for ours: a goroutine that blocked in epoll_wait would
	// keep the scheduler's monitor awake, which costs more than all else when idle.
	// Between them is one more, which can be made deaf: while the leader itself
	// waits in the kernel, nobody else is to be woken.
	idle, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	unix.SetNonblock(idle, true)
	p := &poller{f: f, fd: fd, file: os.NewFile(uintptr(idle), "epoll"), armed: true, sources: map[int32]*source{}, patience: promoteAfter}
	if err := unix.EpollCtl(idle, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if runtime.NumCPU() <= 2 {
		p.patience = promoteAfterTwo
	}
	if p.conn, err = p.file.SyscallConn(); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// Level-triggered and never read: it ends all workers.
	if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, f.stop.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(f.stop.fd)}); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return p, nil
}

func (p *poller) add(s *source) error {
	p.mu.Lock()
	p.sources[int32(s.fd)] = s
	p.mu.Unlock()
	const edge = 1 << 31 // EPOLLET
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, s.fd, &unix.EpollEvent{Events: unix.EPOLLIN | edge, Fd: int32(s.fd)}); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// remove returns when nobody reads the source any more.
func (p *poller) remove(s *source) {
	unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, s.fd, nil)
	p.mu.Lock()
	if p.sources[int32(s.fd)] == s {
		delete(p.sources, int32(s.fd))
	}
	p.mu.Unlock()
	for !s.state.CompareAndSwap(sourceIdle, sourceEnded) {
		time.Sleep(50 * time.Microsecond)
	}
}

func (p *poller) source(fd int32) *source {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.sources[fd]
}

func (p *poller) close() {
	p.file.Close()
	unix.Close(p.fd)
}

// arm has Go's poller take notice of the sources, or not. File's descriptor is
// asked for through conn, since Fd would make it block.
func (p *poller) arm(on bool) {
	if p.armed == on {
		return
	}
	e := unix.EpollEvent{}
	if on {
		e.Events = unix.EPOLLIN
	}
	p.conn.Control(func(idle uintptr) { unix.EpollCtl(int(idle), unix.EPOLL_CTL_MOD, p.fd, &e) })
	p.armed = on
}

// run is a worker. Who leads goes on leading until there is much to do.
func (p *poller) run() {
	m := newMover(p.f)
	leads := false
	for {
		if !leads {
			p.lead.Lock()
			leads = true
		}
		n := p.wait(m)
		for _, e := range m.events[:n] {
			if int(e.Fd) == p.f.stop.fd {
				if leads {
					p.lead.Unlock()
				}
				return
			}
			if s := p.source(e.Fd); s != nil && s.take() {
				leads = p.serve(s, m, leads)
			}
		}
		if n == 0 {
			p.expire(m)
		}
	}
}

// take makes the caller the source's reader, unless there is one.
func (s *source) take() bool {
	for {
		switch s.state.Load() {
		case sourceIdle:
			if s.state.CompareAndSwap(sourceIdle, sourceBusy) {
				return true
			}
		case sourceBusy:
			if s.state.CompareAndSwap(sourceBusy, sourceAgain) {
				return false
			}
		default:
			return false
		}
	}
}

// serve reads a source until it is empty. Who finds much to read lets another
// worker lead. To look for more before sleeping (spinning) was measured to make
// round trips longer: the next in the chain is woken on the same processor.
func (p *poller) serve(s *source, m *mover, leads bool) bool {
	for n := 0; ; {
		for s.drain(m) {
			if n++; leads && n >= p.patience {
				p.lead.Unlock()
				leads = false
			}
		}
		if s.state.CompareAndSwap(sourceBusy, sourceIdle) {
			return leads
		}
		s.state.CompareAndSwap(sourceAgain, sourceBusy)
	}
}

// linger is how long the leader waits in the kernel itself after frames. Later
// Go's poller wakes it, which takes longer but costs nothing while idle.
const linger = 3 // ms

// wait returns the sources with something to read; none after a timeout.
func (p *poller) wait(m *mover) int {
	if m.moved {
		m.moved = false
		if n := p.lingers(m); n > 0 {
			return n
		}
	}
	p.arm(true)
	if p.waiting.Load() {
		p.file.SetReadDeadline(time.Now().Add(expireEvery))
		defer p.file.SetReadDeadline(time.Time{})
	}
	n := 0
	p.conn.Read(func(uintptr) bool {
		n = p.ready(m, 0)
		return n > 0
	})
	return n
}

// lingering counts the threads of this process that wait so: each holds one of the
// scheduler's processors, and one is left to all else.
var lingering atomic.Int32

func (p *poller) lingers(m *mover) (n int) {
	if int(lingering.Add(1)) < runtime.GOMAXPROCS(0) {
		p.arm(false)
		n = p.ready(m, linger)
	}
	lingering.Add(-1)
	return n
}

// ready asks, and waits for so many milliseconds. The scheduler does not know that
// the thread waits, and interrupts it if it needs the processor.
func (p *poller) ready(m *mover, ms int) int {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&m.events)), uintptr(len(m.events)), uintptr(ms), 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}
