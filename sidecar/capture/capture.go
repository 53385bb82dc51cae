// Package capture copies frames of a Pod's links to a stream. It runs as a process of its own in
// the sidecar's container for as long as its stream lasts.
package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/capture"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// Captures is how many a Pod has at the same time: they share the memory of the sidecar's
// container.
const Captures = 4

// The times of a capture.
const (
	// refresh is how often the state is reported and interfaces are looked up: one may be
	// replaced.
	refresh = 2 * time.Second
	// wait is how long frames wait for others, so that they go together.
	wait = 50 * time.Millisecond
	// late is how long the kernel may take to queue a frame after it has stamped it.
	late = 5 * time.Millisecond
)

// room is what may wait in the kernel, in bytes, for each direction of all interfaces together:
// more than half a second of 100,000 small frames, which take far more memory than their bytes.
// Each interface has leastRoom at least.
const (
	room      = 48 << 20
	leastRoom = 1 << 20
)

// Session is one capture.
type Session struct {
	// Device and Own are the network namespaces of the device and of the sidecar.
	Device, Own *nspace.Namespace
	// Status asks the sidecar.
	Status func(context.Context) (api.Status, error)

	request capture.Request
	filter  []bpf.RawInstruction
	out     *capture.Encoder
	batch   *datapath.RxBatch
	fds     []unix.PollFd
	links   []*tapped
	last    api.Status
}

// tapped is an interface of the request.
type tapped struct {
	// key identifies what is tapped: other interfaces have other ones.
	key   string
	taps  []way
	state capture.InterfaceState
	// before are the counts of taps that were closed.
	before struct{ received, dropped uint64 }
}

// way is a tap, with the direction of what it has.
type way struct {
	*datapath.Tap
	direction capture.Direction
}

// Run reads the request from in, and captures until in ends.
func (s *Session) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := s.read(in); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	var err error
	if s.batch, err = datapath.NewRxBatch(); err != nil {
		return err
	}
	defer s.batch.Free()
	s.out = capture.NewEncoder(out)
	s.links = make([]*tapped, len(s.request.Interfaces))
	for i := range s.links {
		s.links[i] = &tapped{}
	}
	defer func() {
		for _, l := range s.links {
			l.close()
		}
	}()
	return s.loop(ctx)
}

// read reads the request, which is a line.
func (s *Session) read(in io.Reader) error {
	var line []byte
	for b := make([]byte, 1); ; { // no byte more: the end of what follows is the end of the capture
		if _, err := io.ReadFull(in, b); err != nil {
			return fmt.Errorf("reading the request: %w", err)
		}
		if b[0] == '\n' {
			break
		}
		if line = append(line, b[0]); len(line) > capture.MaxRequest {
			return errors.New("the request is too long")
		}
	}
	if err := json.Unmarshal(line, &s.request); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if n := len(s.request.Interfaces); n == 0 || n > capture.MaxInterfaces {
		return fmt.Errorf("the request has %d interfaces", n)
	}
	for _, i := range s.request.Filter {
		s.filter = append(s.filter, bpf.RawInstruction{Op: uint16(i[0]), Jt: uint8(i[1]), Jf: uint8(i[2]), K: i[3]})
	}
	return nil
}

// A capture takes at most one of share parts of the worker's processors, and rests at least so
// long between two reads.
const (
	share     = 8
	leastRest = 2 * time.Millisecond
)

// niceness is how much less than the wire a capture gets of a busy processor. Frames are dropped
// then, and counted, rather than that the link slows down.
const niceness = 15

func (s *Session) loop(ctx context.Context) error {
	runtime.LockOSThread() // the thread ends with it
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), niceness)
	var looked, ticked time.Time
	busy := worked()
	for {
		now := time.Now()
		if now.Sub(looked) >= refresh {
			s.look(ctx)
			s.report(false)
			looked = now
		}
		ended := ctx.Err() != nil
		if !ended {
			s.wait()
			rest(worked() - busy)
		}
		began := time.Now()
		busy = worked()
		s.drain()
		if ended {
			s.report(true)
			return s.out.Flush()
		}
		if now.Sub(ticked) >= wait {
			s.out.Tick(began.Add(-late).UnixNano())
			ticked = now
			if err := s.out.Flush(); err != nil {
				return nil // the user has gone
			}
		}
	}
}

// wait waits until a frame is there, for a short time.
func (s *Session) wait() {
	s.fds = s.fds[:0]
	for _, l := range s.links {
		for _, t := range l.taps {
			s.fds = append(s.fds, unix.PollFd{Fd: int32(t.FD()), Events: unix.POLLIN})
		}
	}
	_, _ = unix.Poll(s.fds, int(wait/time.Millisecond)) // then there is none
}

// rest pauses after work that took so much of a processor: frames that come meanwhile are read
// together, and the capture has no more than its share.
func rest(worked time.Duration) {
	time.Sleep(max(leastRest, worked*share/time.Duration(runtime.NumCPU())-worked))
}

// worked is how long the thread has been on a processor.
func worked() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// most is how many batches one tap may have before the others.
const most = 32

func (s *Session) drain() {
	for i, l := range s.links {
		for _, t := range l.taps {
			for range most {
				if !t.Read(s.batch, func(f datapath.Tapped) { s.frame(i, t.direction, f) }) {
					break
				}
			}
		}
	}
}

// frame sends a frame, or those that Linux passes as one: none is longer than the link's MTU,
// and all have their checksums.
func (s *Session) frame(i int, direction capture.Direction, t datapath.Tapped) {
	f := capture.Frame{Interface: i, Direction: direction, Time: t.Time, Length: t.Length}
	if f.Time == 0 {
		f.Time = time.Now().UnixNano()
	}
	send := func(data []byte) {
		f.Data = data
		if s.request.Snap > 0 && len(data) > s.request.Snap {
			f.Data = data[:s.request.Snap]
		}
		s.out.Frame(&f)
	}
	var vnet virtio.Header
	if t.Vnet != nil {
		vnet.Parse(t.Vnet)
	}
	if t.Vnet == nil || len(t.Frame) < t.Length {
		send(t.Frame)
		return
	}
	if vnet.GSO() {
		var whole virtio.SuperFrame
		if whole.Parse(vnet, t.Frame, len(t.Frame)) == nil {
			f.Segments = whole.Segments()
		}
	}
	err := virtio.Segment(vnet, t.Frame, func(data []byte) {
		f.Length = len(data)
		if f.Segments > 1 {
			f.Segment++
		}
		send(data)
	})
	if err != nil { // as it is
		f.Segment, f.Segments, f.Length = 0, 0, t.Length
		send(t.Frame)
	}
}

// report writes the state.
func (s *Session) report(end bool) {
	state := capture.State{Pod: s.last.Pod, Worker: s.last.Worker, Clock: clockOf(s.last.Fabric), End: end}
	for _, l := range s.links {
		l.state.Received, l.state.Dropped = l.before.received, l.before.dropped
		for _, t := range l.taps {
			received, dropped := t.Counts()
			l.state.Received += received
			l.state.Dropped += dropped
		}
		state.Interfaces = append(state.Interfaces, l.state)
	}
	s.out.State(state)
}

func clockOf(f wire.Status) *capture.Clock {
	if f.Clock == nil {
		return nil
	}
	c := &capture.Clock{Epoch: f.Epoch, Base: f.Clock.Base}
	for _, p := range f.Clock.Peers {
		c.Peers = append(c.Peers, capture.PeerClock{Pod: p.Pod, Epoch: p.Epoch, Offset: time.Duration(p.Ahead), Error: time.Duration(p.Error)})
	}
	return c
}

func (l *tapped) close() {
	for _, t := range l.taps {
		received, dropped := t.Counts()
		l.before.received += received
		l.before.dropped += dropped
		t.Close()
	}
	l.taps = nil
}
