//go:build linux

package wire

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// soak is four Pods, each joined to every other one, that are changed, moved,
// restarted and killed while there is traffic. a, b and c are in this process,
// so that what it has can be counted; d is one of its own, which is killed.
type soak struct {
	t          *testing.T
	l          *testLab
	a, b, c, d *testPod
	proc       *process
	rng        *rand.Rand
	addr       int
	changes    int
	kills      int
	// quiet is held for writing while things are counted: traffic pauses.
	quiet    sync.RWMutex
	stop     atomic.Bool
	echoes   atomic.Int64
	answers  atomic.Int64
	carried  atomic.Int64 // bytes of checked TCP
	restarts int
}

// usage is what could leak.
type usage struct{ interfaces, fds, goroutines, heap, kib int }

func (u usage) String() string {
	return fmt.Sprintf("%d interfaces, %d file descriptors, %d goroutines, %d KiB of heap, %d KiB resident", u.interfaces, u.fds, u.goroutines, u.heap, u.kib)
}

// TestSoak runs for WIRE_SOAK seconds, 60 without; `make soak-wire` for hours. How
// much passes is judged with WIRE_SOAK alone.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	d := seconds("WIRE_SOAK", 60)
	s := newSoak(t)
	made := s.interfaces()
	var traffic sync.WaitGroup
	traffic.Go(s.transfers)
	for id := 1; id <= 6; id++ {
		traffic.Go(func() { s.pings(id) })
	}
	for range 100 {
		s.change() // what is made once is made
	}
	first := s.count(func(u usage) bool { return u.interfaces == made })
	t.Logf("at first: %v", first)
	end, told := time.Now().Add(d), time.Now()
	for time.Now().Before(end) && !t.Failed() {
		s.change()
		if time.Since(told) > 10*time.Minute {
			told = time.Now()
			t.Logf("%d changes: %v", s.changes, s.count(func(usage) bool { return true }))
		}
		time.Sleep(20 * time.Millisecond)
	}
	fine := func(u usage) bool {
		return u.interfaces == first.interfaces && u.fds <= first.fds+4 && u.goroutines <= first.goroutines+4 && u.heap <= first.heap+(8<<10)
	}
	last := s.count(fine)
	s.stop.Store(true)
	traffic.Wait()
	t.Logf("at last: %v", last)
	t.Logf("%v: %d changes, %d kills, %d restarts; %d of %d echoes answered; %d MiB of TCP checked",
		d, s.changes, s.kills, s.restarts, s.answers.Load(), s.echoes.Load(), s.carried.Load()>>20)
	if first.interfaces != made || !fine(last) {
		t.Errorf("something leaks; %d interfaces were made", made)
	}
	least := int64(1)
	if os.Getenv("WIRE_SOAK") != "" {
		least = s.echoes.Load() / 4
	}
	if s.answers.Load() < least || s.carried.Load() == 0 {
		t.Error("too little passed")
	}
}

func newSoak(t *testing.T) *soak {
	l := newLab(t, 1600, nil)
	s := &soak{t: t, l: l, rng: rand.New(rand.NewPCG(4, uint64(time.Now().UnixNano()))), addr: 10}
	s.a, s.b, s.c, s.d = l.pod("a"), l.pod("b"), l.pod("c"), l.pod("d")
	for id, e := range [][2]*testPod{{s.a, s.b}, {s.a, s.c}, {s.b, s.c}, {s.a, s.d}, {s.b, s.d}, {s.c, s.d}} {
		l.wire(id+1, e[0], e[1], 1500, nil)
	}
	s.a.start()
	s.b.start()
	s.c.start()
	s.proc = s.d.process(false)
	s.calm()
	return s
}

// calm waits until all wires are up. What is not says how it is, after a while, at
// both ends.
func (s *soak) calm() {
	s.t.Helper()
	pods := []*testPod{s.a, s.b, s.c}
	for _, p := range pods {
		for _, w := range p.wires {
			for begin := time.Now(); !p.status(int(w.ID)).Up; time.Sleep(time.Millisecond) {
				if time.Since(begin) < patience {
					continue
				}
				for _, q := range pods {
					st := q.fabric.Status()
					s.t.Logf("%s: wire %+v\n\tdropped %v", q.name, q.status(int(w.ID)), st.Dropped)
				}
				s.t.Fatalf("after %d changes, wire %d of %s is not up again", s.changes, w.ID, p.name)
			}
		}
	}
}

// change does one thing to the lab.
func (s *soak) change() {
	s.changes++
	switch n := s.rng.IntN(100); {
	case n < 30:
		s.edit(s.end(1, 2, 3), func(w *Wire) { w.Datapath = []string{DatapathUDP, DatapathVXLAN, DatapathAuto}[s.rng.IntN(3)] })
	case n < 55:
		s.edit(s.end(1, 2, 3), func(w *Wire) {
			w.Impairment = nil
			if s.rng.IntN(2) == 0 {
				w.Impairment = &contract.Impairment{DelayMS: 1, Loss: 0.5, Duplication: 0.5}
			}
		})
	case n < 60:
		s.edit(s.end(2, 3), func(w *Wire) { w.Plain = !w.Plain })
	case n < 75: // one end goes and comes
		e := s.end(2, 3)
		p, i := e.p, e.i
		all := p.wires
		fatal(s.t, p.fabric.Set(append(append([]Wire(nil), all[:i]...), all[i+1:]...)))
		time.Sleep(time.Duration(s.rng.IntN(30)) * time.Millisecond)
		fatal(s.t, p.fabric.Set(all))
	case n < 85:
		s.remake(s.end(2, 3))
	case n < 92:
		e := s.end(2, 3)
		p, i := e.p, e.i
		dev := fmt.Sprintf("eth%d", p.wires[i].ID)
		p.dev.down(s.t, dev)
		time.Sleep(time.Duration(s.rng.IntN(20)) * time.Millisecond)
		p.dev.up(s.t, dev)
	case n < 94:
		s.c.stop()
		s.c.start()
		s.restarts++
	case n < 96:
		s.addr = 10 + (s.addr-9)%200
		s.c.setAddr(s.addr)
	case n < 98:
		s.proc.kill()
		s.proc = s.d.process(false)
		s.kills++
	default:
		s.calm()
	}
}

// anEnd is wire i of a Pod.
type anEnd struct {
	p *testPod
	i int
}

// end picks one end of one of the wires, in this process.
func (s *soak) end(ids ...int) anEnd {
	id := ids[s.rng.IntN(len(ids))]
	pods := []*testPod{s.a, s.b, s.c}
	for {
		p := pods[s.rng.IntN(len(pods))]
		for i, w := range p.wires {
			if int(w.ID) == id {
				return anEnd{p, i}
			}
		}
	}
}

func (s *soak) edit(e anEnd, change func(*Wire)) {
	p, i := e.p, e.i
	p.wires = append([]Wire(nil), p.wires...)
	change(&p.wires[i])
	fatal(s.t, p.fabric.Set(p.wires))
}

// remake is a device that deletes its interface, and the sidecar that makes it
// again.
func (s *soak) remake(e anEnd) {
	p, i := e.p, e.i
	w := &p.wires[i]
	dev := fmt.Sprintf("eth%d", w.ID)
	addrs, err := p.dev.h.AddrList(p.dev.link(s.t, dev), netlink.FAMILY_V4)
	fatal(s.t, err)
	fatal(s.t, p.dev.h.LinkDel(p.dev.link(s.t, dev)))
	time.Sleep(time.Duration(s.rng.IntN(10)) * time.Millisecond)
	veth(s.t, p.ns, w.Leg, p.dev, dev, w.MTU)
	for _, a := range addrs {
		p.dev.addr(s.t, dev, a.IPNet.String())
	}
	s.edit(anEnd{p, i}, func(w *Wire) { w.LegIndex = p.ns.link(s.t, w.Leg).Attrs().Index })
}

// interfaces counts those of all Pods.
func (s *soak) interfaces() (n int) {
	s.t.Helper()
	for _, p := range []*testPod{s.a, s.b, s.c, s.d} {
		for _, ns := range []*testNS{p.ns, p.dev} {
			links, err := ns.h.LinkList()
			fatal(s.t, err)
			n += len(links)
		}
	}
	return n
}

// count waits until all is as it was made, and counts: again, for a while, as long
// as it is not fine.
func (s *soak) count(fine func(usage) bool) usage {
	s.t.Helper()
	s.quiet.Lock()
	defer s.quiet.Unlock()
	for _, p := range []*testPod{s.a, s.b, s.c} {
		for i := range p.wires {
			s.edit(anEnd{p, i}, func(w *Wire) { w.Datapath, w.Impairment, w.Plain = DatapathUDP, nil, false })
		}
	}
	s.calm()
	look := func() usage {
		debug.FreeOSMemory()
		files, _ := os.ReadDir("/proc/self/fd")
		return usage{interfaces: s.interfaces(), fds: len(files), goroutines: runtime.NumGoroutine(), heap: int(heapInUse() >> 10), kib: residentKiB(s.t, os.Getpid())}
	}
	// What was told to go, vxlan devices above all, is gone a moment later.
	for begin := time.Now(); ; {
		u := look()
		time.Sleep(50 * time.Millisecond)
		v := look()
		settled := v.interfaces == u.interfaces && v.fds == u.fds && v.goroutines == u.goroutines
		if settled && fine(v) || time.Since(begin) > 30*time.Second {
			return v
		}
	}
}

// transfers sends TCP over wire 1, which is changed but never taken away.
func (s *soak) transfers() {
	const size = 8 << 20
	for !s.stop.Load() {
		s.quiet.RLock()
		if err := transfer(s.t, s.a.dev, s.b.dev, "192.168.1.2", size); err != nil {
			s.t.Errorf("TCP over wire 1: %v", err)
			s.stop.Store(true)
		}
		s.carried.Add(size)
		s.quiet.RUnlock()
		time.Sleep(200 * time.Millisecond)
	}
}

// pings asks over one wire; only an answer that differs is an error.
func (s *soak) pings(id int) {
	from := map[int]*testPod{1: s.a, 2: s.a, 3: s.b, 4: s.a, 5: s.b, 6: s.c}[id]
	p := from.dev.hasty(s.t)
	for seq := uint16(1); !s.stop.Load(); seq++ {
		s.quiet.RLock()
		_, err := p.ping(fmt.Sprintf("192.168.%d.2", id), int(seq)%1400, seq)
		s.echoes.Add(1)
		switch err.(type) {
		case nil:
			s.answers.Add(1)
		case unix.Errno:
		default:
			s.t.Errorf("wire %d: %v", id, err)
		}
		s.quiet.RUnlock()
		time.Sleep(10 * time.Millisecond)
	}
}
