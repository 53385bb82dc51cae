//go:build linux

package datapath

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

// A few workers read all sockets. One of them, the leader, waits for all sockets (epoll,
// edge-triggered). With little traffic it does all the work itself: the answer to a frame
// that it just delivered is read by a thread that is already awake. If the leader falls
// behind, another worker takes over.

const (
	// promoteAfter is how many consecutive batches of one socket the leader reads
	// before another worker takes over. With two processors the other one is busy with
	// the sender, the receiver or the other Pod.
	promoteAfter    = 2
	promoteAfterTwo = 16
	// expireEvery is how often incomplete frames are checked, if there are any.
	expireEvery = 50 * time.Millisecond
)

// Source is a socket that is read.
type Source struct {
	FD int
	// Drain reads one batch and reports whether there may be more.
	Drain func(m *Mover) bool
	// state makes sure that only one worker reads the source.
	state atomic.Int32
}

const (
	sourceIdle  int32 = iota
	sourceBusy        // a worker reads it
	sourceAgain       // and more has arrived
	sourceEnded
)

// Mover holds what one goroutine needs to move frames: batches in both directions.
type Mover struct {
	Send    Batch      // to peers
	Deliver *Deliverer // to legs
	// legs is held while frames are written to legs; locked: by this mover.
	legs   *sync.Mutex
	locked bool
	// Moved is set if frames were moved since the last wait.
	Moved  bool
	events [32]unix.EpollEvent
}

// Batch is a queue of frames.
type Batch interface{ Flush() }

// NewMover returns a mover whose frames to peers go by send.
func NewMover(send Batch, legs *sync.Mutex) *Mover {
	return &Mover{Send: send, Deliver: NewDeliverer(), legs: legs}
}

// Hold prevents legs from being closed until Flush.
func (m *Mover) Hold() {
	if !m.locked {
		m.legs.Lock()
		m.locked = true
	}
}

// Flush sends and delivers what is queued.
func (m *Mover) Flush() {
	m.Send.Flush()
	m.Deliver.Flush()
	if m.locked {
		m.legs.Unlock()
		m.locked = false
	}
}

// Poller holds the sources and their leader.
type Poller struct {
	stop int      // readable when the workers are to end
	fd   int      // epoll of all sources
	file *os.File // epoll of fd alone, which Go's own poller waits for
	conn syscall.RawConn
	// armed is set if file watches fd. Only the leader uses it.
	armed bool
	lead  sync.Mutex
	// Waiting is set if frames are incomplete, so that Expire must be called.
	Waiting atomic.Bool
	Expire  func(m *Mover)
	// patience is promoteAfter for this machine.
	patience int

	mu      sync.RWMutex
	sources map[int32]*Source
}

// NewPoller returns a poller whose workers end when the descriptor stop is readable.
func NewPoller(stop int) (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// Go's poller waits for ours: a goroutine that blocks in epoll_wait would keep the
	// scheduler's monitor awake, which costs more than everything else when idle.
	// Between them is a third epoll instance that can be disabled: while the leader
	// itself waits in the kernel, nothing else should wake up.
	idle, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	unix.SetNonblock(idle, true)
	p := &Poller{stop: stop, fd: fd, file: os.NewFile(uintptr(idle), "epoll"), armed: true, sources: map[int32]*Source{}, patience: promoteAfter}
	if err := unix.EpollCtl(idle, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if runtime.NumCPU() <= 2 {
		p.patience = promoteAfterTwo
	}
	if p.conn, err = p.file.SyscallConn(); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	// Level-triggered and never read, so that it ends all workers.
	if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, stop, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(stop)}); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return p, nil
}

// Add has the workers read a source.
func (p *Poller) Add(s *Source) error {
	p.mu.Lock()
	p.sources[int32(s.FD)] = s
	p.mu.Unlock()
	const edge = 1 << 31 // EPOLLET
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, s.FD, &unix.EpollEvent{Events: unix.EPOLLIN | edge, Fd: int32(s.FD)}); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// remove returns when no worker reads the source any more.
func (p *Poller) remove(s *Source) {
	unix.EpollCtl(p.fd, unix.EPOLL_CTL_DEL, s.FD, nil)
	p.mu.Lock()
	if p.sources[int32(s.FD)] == s {
		delete(p.sources, int32(s.FD))
	}
	p.mu.Unlock()
	for !s.state.CompareAndSwap(sourceIdle, sourceEnded) {
		time.Sleep(50 * time.Microsecond)
	}
}

func (p *Poller) source(fd int32) *Source {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.sources[fd]
}

// Close comes after the workers have ended.
func (p *Poller) Close() {
	p.file.Close()
	unix.Close(p.fd)
}

// arm sets whether Go's poller watches the sources. It gets the descriptor of file from
// conn, since Fd would make it blocking.
func (p *Poller) arm(on bool) {
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

// Run is a worker. The leader keeps leading until there is much to do.
func (p *Poller) Run(m *Mover) {
	leads := false
	for {
		if !leads {
			p.lead.Lock()
			leads = true
		}
		n := p.wait(m)
		for _, e := range m.events[:n] {
			if int(e.Fd) == p.stop {
				if leads {
					p.lead.Unlock()
				}
				return
			}
			if s := p.source(e.Fd); s != nil && s.Take() {
				leads = p.Serve(s, m, leads)
			}
		}
		if n == 0 {
			p.Expire(m)
		}
	}
}

// Take makes the caller the source's reader, unless there is one.
func (s *Source) Take() bool {
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

// Serve reads a source until it is empty. A leader that finds much to read lets another
// worker lead. Spinning before sleeping was measured to make round trips longer: the next
// thread in the chain wakes up on the same processor.
func (p *Poller) Serve(s *Source, m *Mover, leads bool) bool {
	for n := 0; ; {
		for s.Drain(m) {
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

// linger is how long the leader waits in the kernel itself after frames. After that, Go's
// poller wakes it, which takes longer but costs nothing while idle.
const linger = 3 // ms

// wait returns the number of sources with something to read, 0 after a timeout.
func (p *Poller) wait(m *Mover) int {
	if m.Moved {
		m.Moved = false
		if n := p.lingers(m); n > 0 {
			return n
		}
	}
	p.arm(true)
	if p.Waiting.Load() {
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

// lingering counts the threads of this process that wait like this. Each holds one of the
// scheduler's processors, and one must remain for everything else.
var lingering atomic.Int32

func (p *Poller) lingers(m *Mover) (n int) {
	if int(lingering.Add(1)) < runtime.GOMAXPROCS(0) {
		p.arm(false)
		n = p.ready(m, linger)
	}
	lingering.Add(-1)
	return n
}

// ready waits up to ms milliseconds. The scheduler does not know that the thread waits, and
// interrupts it if it needs the processor.
func (p *Poller) ready(m *Mover, ms int) int {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&m.events)), uintptr(len(m.events)), uintptr(ms), 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}
