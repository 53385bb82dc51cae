//go:build linux

package wire

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// neighbours are two Pods on one worker with wire 1, which takes what it likes.
func neighbours(t testing.TB, edit func(*Wire)) (near *os.File, l *testLab, a, b *testPod) {
	l = newLab(t, 1500, nil)
	near = worker(t)
	a, b = l.pod("a"), l.pod("b")
	a.worker, b.worker = near, near
	l.wire(1, a, b, 9500, func(w *Wire) {
		w.Datapath = DatapathAuto
		if edit != nil {
			edit(w)
		}
	})
	a.start()
	b.start()
	waitUp(t, 1, a, b)
	return near, l, a, b
}

// takes waits until both ends send by a datapath.
func takes(t testing.TB, datapath string, a, b *testPod) {
	t.Helper()
	by := func(p *testPod) bool {
		s := p.status(1)
		return s.Up && s.Datapath == datapath && s.RemoteDatapath == datapath
	}
	begin := time.Now()
	for !by(a) || !by(b) {
		if time.Since(begin) > patience {
			t.Fatalf("the wire does not take %s:\n%+v\n%+v", datapath, a.status(1), b.status(1))
		}
		time.Sleep(time.Millisecond)
	}
}

// sockets are those of the lab's Pods in a worker's folder.
func sockets(t testing.TB, near *os.File) []string {
	t.Helper()
	all, err := filepath.Glob(near.Name() + "/*/[0-9a-f]*")
	fatal(t, err)
	return all
}

// links are the interfaces of a namespace, sorted.
func (n *testNS) links(t testing.TB) []string {
	t.Helper()
	all, err := n.h.LinkList()
	fatal(t, err)
	var names []string
	for _, l := range all {
		names = append(names, l.Attrs().Name)
	}
	slices.Sort(names)
	return names
}

// redirects counts the tc filters of a leg, besides the one that drops.
func (p *testPod) redirects(t testing.TB) int {
	t.Helper()
	filters, err := p.ns.h.FilterList(p.ns.link(t, "leg1"), netlink.HANDLE_MIN_INGRESS)
	n := 0
	if err != nil {
		return n // there is no clsact any more
	}
	for _, f := range filters {
		if f.Attrs().Priority != shieldPriority {
			n++
		}
	}
	return n
}

// Two Pods of one worker are joined in its kernel whatever the MTU, and what is made for
// it goes with the wire.
func TestLocal(t *testing.T) {
	near, _, a, b := neighbours(t, nil)
	takes(t, DatapathLocal, a, b)
	if why := a.status(1).Why; why != "" {
		t.Errorf("the preferred datapath has the reason %q", why)
	}
	p := a.dev.pinger(t)
	before := a.status(1).TxFrames
	for _, size := range []int{0, 100, 1472, 4000, 9472} {
		if _, err := p.ping("192.168.1.2", size, uint16(size)); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if sent := a.status(1).TxFrames - before; sent > 0 {
		t.Errorf("%d frames went by udp", sent)
	}
	for _, way := range [][2]*testPod{{a, b}, {b, a}} {
		to := "192.168.1.2"
		if way[0] == b {
			to = "192.168.1.1"
		}
		if err := transfer(t, way[0].dev, way[1].dev, to, 20<<20); err != nil {
			t.Error(err)
		}
	}
	if s := sockets(t, near); len(s) != 2 {
		t.Errorf("the folder has %v", s)
	}
	dirs, err := filepath.Glob(near.Name() + "/*")
	fatal(t, err)
	if st, err := os.Stat(dirs[0]); err != nil || len(dirs) != 1 || st.Mode().Perm() != 0o700 {
		t.Errorf("folders %v: %v %v", dirs, st, err)
	}

	// Impaired, it goes by udp, at both ends, and back.
	for range 2 {
		a.wires[0].Impairment = &contract.Impairment{DelayMS: 1}
		fatal(t, a.fabric.Set(a.wires))
		takes(t, DatapathUDP, a, b)
		if why := a.status(1).Why; why != "not local: impaired; not vxlan: impaired" {
			t.Errorf("the reason is %q", why)
		}
		if _, err := p.ping("192.168.1.2", 100, 1); err != nil {
			t.Error(err)
		}
		a.wires[0].Impairment = nil
		fatal(t, a.fabric.Set(a.wires))
		takes(t, DatapathLocal, a, b)
	}
	// Taken down, it stays as it is, but for the carriers.
	for _, way := range [][2]*testPod{{a, b}, {b, a}} {
		way[0].wires[0].Impairment = &contract.Impairment{Down: true}
		fatal(t, way[0].fabric.Set(way[0].wires))
		eventually(t, "both ends down", func() bool { return !a.dev.carrier("eth1") && !b.dev.carrier("eth1") })
		if by := a.status(1).Datapath; by != DatapathLocal {
			t.Errorf("a link that is down goes by %s", by)
		}
		way[0].wires[0].Impairment = nil
		fatal(t, way[0].fabric.Set(way[0].wires))
		eventually(t, "both ends up", func() bool { return a.dev.carrier("eth1") && b.dev.carrier("eth1") })
		if _, err := p.ping("192.168.1.2", 100, 1); err != nil {
			t.Error(err)
		}
	}
	for _, by := range []string{DatapathVXLAN, DatapathLocal, DatapathVXLAN, DatapathUDP, DatapathLocal} {
		for _, w := range []*testPod{a, b} {
			w.wires[0].Datapath = by
			fatal(t, w.fabric.Set(w.wires))
		}
		takes(t, by, a, b)
		pingOnce(t, a, "by "+by)
	}

	fatal(t, a.fabric.Set(nil))
	fatal(t, b.fabric.Set(nil))
	for _, w := range []*testPod{a, b} {
		eventually(t, "only what was there is there", func() bool { return slices.Equal(w.ns.links(t), []string{"c9s0", "leg1", "lo"}) })
		if n := w.redirects(t); n > 0 {
			t.Errorf("%d filters stay on the leg", n)
		}
	}
	a.stop()
	b.stop()
	if left, _ := filepath.Glob(near.Name() + "/*"); len(left) > 0 {
		t.Errorf("in the worker's folder stays %v", left)
	}
}

// pingOnce sends an echo and expects one answer, and no second one.
func pingOnce(t testing.TB, from *testPod, what string) {
	t.Helper()
	p := from.dev.hasty(t)
	if _, err := p.ping("192.168.1.2", 64, 9); err != nil {
		if _, err = p.ping("192.168.1.2", 64, 9); err != nil { // one may be lost when the datapath changes
			t.Errorf("%s: %v", what, err)
			return
		}
		return
	}
	buf := make([]byte, 1500)
	if n, _, err := unix.Recvfrom(p.fd, buf, 0); err == nil {
		t.Errorf("%s: the answer came twice: %d bytes", what, n)
	}
}

func TestLocalCarrier(t *testing.T) {
	_, _, a, b := neighbours(t, nil)
	takes(t, DatapathLocal, a, b)
	index := a.dev.link(t, "eth1").Attrs().Index
	for range 3 {
		b.dev.down(t, "eth1")
		eventually(t, "the near end sees that the far one is down", func() bool { return !a.dev.carrier("eth1") })
		b.dev.up(t, "eth1")
		eventually(t, "and up", func() bool { return a.dev.carrier("eth1") })
	}
	takes(t, DatapathLocal, a, b)
	pingOnce(t, a, "after all")
	// The neighbour's Pod ends: the device's interface stays.
	b.stop()
	for _, n := range []string{"c9si1", "leg1"} {
		fatal(t, b.ns.h.LinkDel(b.ns.link(t, n)))
	}
	eventually(t, "carrier down", func() bool { return !a.dev.carrier("eth1") })
	eventually(t, "nothing of the neighbour is left", func() bool { return !slices.Contains(a.ns.links(t), "c9so1") })
	if now := a.dev.link(t, "eth1").Attrs().Index; now != index {
		t.Errorf("the device has interface %d and had %d", now, index)
	}
}

// A process that restarts finds what its predecessor left, killed or not.
func TestLocalRestart(t *testing.T) {
	near, _, a, b := neighbours(t, func(w *Wire) { w.Datapath = DatapathLocal })
	takes(t, DatapathLocal, a, b)
	for range 3 {
		a.stop()
		a.start()
		takes(t, DatapathLocal, a, b)
		pingOnce(t, a, "after a restart")
	}
	a.stop()
	for range 4 {
		p := a.process(false)
		p.ready()
		takesAt(t, DatapathLocal, b)
		pingOnce(t, a, "to a process")
		p.kill()
		if n := len(sockets(t, near)); n != 2 {
			t.Errorf("%d sockets after a kill", n)
		}
	}
	// What the killed one left is removed where it is not wanted any more.
	for _, w := range []*testPod{a, b} {
		w.wires[0].Datapath = DatapathUDP
	}
	fatal(t, b.fabric.Set(b.wires))
	a.start()
	takes(t, DatapathUDP, a, b)
	eventually(t, "the redirect is gone", func() bool { return a.redirects(t) == 0 })
	pingOnce(t, a, "by udp")
	eventually(t, "the pairs are gone", func() bool {
		return slices.Equal(a.ns.links(t), []string{"c9s0", "leg1", "lo"}) && slices.Equal(b.ns.links(t), []string{"c9s0", "leg1", "lo"})
	})
}

func takesAt(t testing.TB, datapath string, p *testPod) {
	t.Helper()
	eventually(t, "takes "+datapath, func() bool {
		s := p.status(1)
		return s.Up && s.Datapath == datapath && s.RemoteDatapath == datapath
	})
}

// Interfaces of a pair that somebody deletes are made again.
func TestLocalPairIsLost(t *testing.T) {
	_, _, a, b := neighbours(t, nil)
	for _, name := range []string{"c9si1", "c9so1", "c9si1"} {
		takes(t, DatapathLocal, a, b)
		index := a.ns.link(t, name).Attrs().Index
		fatal(t, a.ns.h.LinkDel(a.ns.link(t, name)))
		eventually(t, "the pair is there again", func() bool {
			l, err := a.ns.h.LinkByName(name)
			return err == nil && l.Attrs().Index != index && a.status(1).Datapath == DatapathLocal && b.status(1).Datapath == DatapathLocal
		})
		eventually(t, "frames pass", func() bool {
			_, err := a.dev.hasty(t).ping("192.168.1.2", 10, 1)
			return err == nil
		})
	}
}

// Pods on different workers, without a folder, of open or encrypted labs and with another
// key do not meet.
func TestLocalNot(t *testing.T) {
	for name, c := range map[string]struct {
		tune func(n int, o *Options)
		why  string
	}{
		"other workers": {func(n int, o *Options) {}, "not local: the peer is not on this worker"},
		"no folder":     {func(n int, o *Options) { o.Folder = 0 }, "not local: the Pod has no folder of the worker"},
		"open":          {func(n int, o *Options) { o.Key = nil }, "not local: the lab has no key"},
		"encrypted":     {func(n int, o *Options) { o.Encrypt = true }, "not local: encrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			l := newLab(t, 1500, func(o *Options) { n++; c.tune(n, o) })
			a, b := l.pod("a"), l.pod("b")
			a.worker = worker(t)
			b.worker = a.worker
			if name == "other workers" {
				b.worker = worker(t)
			}
			l.wire(1, a, b, 1500, func(w *Wire) { w.Datapath = DatapathAuto })
			a.start()
			b.start()
			takes(t, DatapathUDP, a, b)
			if why := a.status(1).Why; !strings.HasPrefix(why, c.why+"; not vxlan: ") {
				t.Errorf("the reason is %q", why)
			}
		})
	}
}

// A Pod moves between two workers under traffic, each time with namespaces of its own, and
// is killed there: the wire goes by local, then udp, then local; nothing stays at the other
// end, or on a worker. WIRE_MOVES is for how many seconds (default 20).
func TestLocalMoves(t *testing.T) {
	d := seconds("WIRE_MOVES", 20)
	if testing.Short() {
		d = 5 * time.Second
	}
	l := newLab(t, 1500, nil)
	workers := []*os.File{worker(t), worker(t)}
	a := l.pod("a")
	a.worker = workers[0]
	m := &mover{t: t, l: l, a: a, workers: workers, address: 10}
	m.place(0)
	a.start()
	takes(t, DatapathLocal, a, m.b)
	index := a.dev.link(t, "eth1").Attrs().Index

	const apart = 60_000 // numbers of echoes, since each socket gets the answers to both
	var stop atomic.Bool
	var echoes, answers atomic.Int64
	var traffic sync.WaitGroup
	traffic.Go(func() {
		p := a.dev.hasty(t)
		for seq := uint16(1); !stop.Load(); seq = (seq + 1) % apart {
			echoes.Add(1)
			switch _, err := p.ping("192.168.1.2", int(seq)%9000, seq); err.(type) {
			case nil:
				answers.Add(1)
			case unix.Errno:
			default:
				t.Error(err)
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	ping := a.dev.hasty(t)
	files := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		fatal(t, err)
		return len(all)
	}
	first := 0
	moves, kills := 0, 0
	for end := time.Now().Add(d); time.Now().Before(end) && !t.Failed(); moves++ {
		to := (moves + 1) % 2
		if rand.IntN(3) == 0 {
			kills++
			m.lose()
		}
		m.leave()
		m.place(to)
		takes(t, []string{DatapathLocal, DatapathUDP}[to], a, m.b)
		eventually(t, "frames pass", func() bool {
			_, err := ping.ping("192.168.1.2", 1000, apart+uint16(moves%1000))
			return err == nil
		})
		if to == 1 {
			eventually(t, "nothing of the neighbour is left", func() bool { return slices.Equal(a.ns.links(t), []string{"c9s0", "leg1", "lo"}) })
		}
		if moves == 4 {
			first = files()
		}
	}
	if now := a.dev.link(t, "eth1").Attrs().Index; now != index {
		t.Errorf("the device has interface %d and had %d", now, index)
	}
	if moves > 5 {
		eventually(t, "no descriptors are left", func() bool { return files() <= first+8 })
	}
	stop.Store(true)
	traffic.Wait()
	m.leave()
	a.stop()
	for _, w := range workers {
		if left, _ := filepath.Glob(w.Name() + "/*"); len(left) > 0 {
			t.Errorf("on a worker stays %v", left)
		}
	}
	t.Logf("%d moves, %d of them after a kill; %d of %d echoes answered", moves, kills, answers.Load(), echoes.Load())
	if moves < 2 || answers.Load() == 0 {
		t.Error("nothing happened")
	}
}

// mover moves Pod b, which has wire 1 with a.
type mover struct {
	t       *testing.T
	l       *testLab
	a, b    *testPod
	workers []*os.File
	address int
	sockets []string // of b
}

// lose has the socket of the Pod stay, as if its process were killed.
func (m *mover) lose() {
	for _, name := range m.sockets {
		fatal(m.t, os.Rename(name, name+"0"))
	}
}

// place makes a new sandbox of the Pod on a worker.
func (m *mover) place(where int) {
	t, l := m.t, m.l
	m.address = 10 + (m.address-9)%200
	b := &testPod{lab: l, name: "b", ns: newNS(t), dev: newNS(t), worker: m.workers[where], port: fmt.Sprintf("move%d", m.address)}
	veth(t, b.ns, "c9s0", l.under, b.port, l.mtu)
	fatal(t, l.under.h.LinkSetMaster(l.under.link(t, b.port), l.under.link(t, "br0")))
	b.setAddr(m.address)
	l.pods["b"] = b
	if m.b == nil {
		l.wire(1, m.a, b, 9500, func(w *Wire) { w.Datapath = DatapathAuto })
	} else {
		w := m.b.wires[0]
		veth(t, b.ns, w.Leg, b.dev, "eth1", w.MTU)
		b.dev.addr(t, "eth1", "192.168.1.2/24")
		w.LegIndex = b.ns.link(t, w.Leg).Attrs().Index
		b.wires = []Wire{w}
	}
	fatal(t, b.dev.h.LinkSetHardwareAddr(b.dev.link(t, "eth1"), net.HardwareAddr{2, 0, 0, 0, 0, 2})) // as the sidecar does
	m.b = b
	before := sockets(t, m.workers[where])
	b.start()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		m.sockets = slices.DeleteFunc(sockets(t, m.workers[where]), func(name string) bool { return slices.Contains(before, name) })
		if len(m.sockets) == 1 {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("the Pod's sockets are %v, before there were %v: %+v", m.sockets, before, b.status(1))
		}
	}
}

// leave ends the Pod with all that it has.
func (m *mover) leave() {
	m.b.stop()
	m.b.ns.end()
	m.b.dev.end()
}
