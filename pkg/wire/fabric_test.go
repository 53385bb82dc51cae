//go:build linux

package wire

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/internal/memory"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// two makes two Pods with wire 1 between them, up.
func two(t testing.TB, underlay, mtu int, v6 bool, tune func(*Options), edit func(*Wire)) (*testLab, *testPod, *testPod) {
	l := newLab(t, underlay, tune)
	l.v6 = v6
	a, b := l.pod("a"), l.pod("b")
	l.wire(1, a, b, mtu, edit)
	a.start()
	b.start()
	waitUp(t, 1, a, b)
	return l, a, b
}

func pathKnown(t testing.TB, mtu int, pods ...*testPod) {
	t.Helper()
	for _, p := range pods {
		eventually(t, "path MTU", func() bool { return p.status(1).PathMTU == mtu })
	}
}

func TestPingEverySize(t *testing.T) {
	for _, tc := range []struct {
		name     string
		underlay int
		v6       bool
		tune     func(*Options)
	}{
		{"1500", 1500, false, nil},
		{"1400", 1400, false, nil},
		{"9000", 9000, false, nil},
		{"IPv6", 1500, true, nil},
		{"encrypted", 1500, false, func(o *Options) { o.Encrypt = true }},
		{"without offloads", 1500, false, func(o *Options) { o.noOffload = true }},
		{"without segmentation", 1500, false, func(o *Options) { o.noSegment = true }},
		{"open", 1500, false, func(o *Options) { o.Key = nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, a, b := two(t, tc.underlay, 9500, tc.v6, tc.tune, nil)
			pathKnown(t, tc.underlay, a, b)
			p := a.dev.pinger(t)
			seq := uint16(0)
			for size := 0; size <= 9472; size++ {
				if size > 2 && size < 9460 && size%97 != 0 && (size < 1330 || size > 1480) {
					continue
				}
				seq++
				if _, err := p.ping("192.168.1.2", size, seq); err != nil {
					if _, err = p.ping("192.168.1.2", size, seq); err != nil {
						t.Fatalf("%d bytes: %v %+v", size, err, b.fabric.Status())
					}
				}
			}
		})
	}
}

// raw opens a packet socket on a device's interface.
func (n *testNS) raw(t testing.TB, name string) int {
	t.Helper()
	index := n.link(t, name).Attrs().Index
	var fd int
	var err error
	n.do(func() { fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) })
	fatal(t, err)
	fatal(t, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1))
	fatal(t, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1))
	fatal(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}))
	fatal(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: datapath.Htons(unix.ETH_P_ALL), Ifindex: index}))
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// receiveFrame takes frames, with their tags, until want comes or time is over.
// Another one is shown to other, unless that is nil.
func receiveFrame(fd int, want []byte, limit time.Duration, other func(frame []byte)) bool {
	b, err := datapath.NewRxBatch()
	if err != nil {
		return false
	}
	defer b.Free()
	for end := time.Now().Add(limit); time.Now().Before(end); {
		unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		b.Prepare(false, false, 1)
		if n, _ := b.Recv(fd); n != 1 {
			continue
		}
		f := datapath.FrameOf(b, 0, int(b.Msgs[0].Len), false)
		if bytes.Equal(f, want) {
			return true
		}
		if other != nil {
			other(f)
		}
	}
	return false
}

func controlFrames() map[string][]byte {
	pad := func(b []byte, n int) []byte {
		for i := len(b); i < n; i++ {
			b = append(b, byte(i))
		}
		return b
	}
	head := func(dst string, rest ...byte) []byte {
		var m [6]byte
		fmt.Sscanf(dst, "%02x:%02x:%02x:%02x:%02x:%02x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5])
		return append(append(m[:], 2, 0, 0, 0, 0, 9), rest...)
	}
	return map[string][]byte{
		"LLDP":     pad(head("01:80:c2:00:00:0e", 0x88, 0xcc), 120),
		"LACP":     pad(head("01:80:c2:00:00:02", 0x88, 0x09), 124),
		"STP":      pad(head("01:80:c2:00:00:00", 0, 38, 0x42, 0x42, 3), 60),
		"IS-IS":    pad(head("09:00:2b:00:00:05", 0xfe, 0xfe, 3), 1514),
		"ND":       pad(head("33:33:ff:00:00:01", 0x86, 0xdd, 0x60), 86),
		"VLAN":     pad(head("02:00:00:00:00:01", 0x81, 0, 0x20, 5, 8, 0, 0x45), 1504),
		"QinQ":     pad(head("02:00:00:00:00:01", 0x88, 0xa8, 0, 7, 0x81, 0, 0, 5, 8, 0, 0x45), 9000),
		"priority": pad(head("02:00:00:00:00:01", 0x81, 0, 0xe0, 0, 0x12, 0x34), 60),
		"MACsec":   pad(head("02:00:00:00:00:01", 0x88, 0xe5), 9514),
		"runt":     head("02:00:00:00:00:01", 0x88, 0xb5, 1),
	}
}

func TestFramesArriveUnchanged(t *testing.T) {
	for _, datapath := range []string{DatapathUDP, DatapathVXLAN, DatapathLocal} {
		t.Run(datapath, func(t *testing.T) {
			near := worker(t)
			_, a, b := two(t, 1500, 9500, false, func(o *Options) { o.Folder = int(near.Fd()) }, func(w *Wire) { w.Datapath = datapath })
			pathKnown(t, 1500, a, b)
			eventually(t, "datapath", func() bool { return a.status(1).Datapath == datapath })
			tx, rx := a.dev.raw(t, "eth1"), b.dev.raw(t, "eth1")
			frames := controlFrames()
			// Who is late is lost, as frames may be. None may be other than it was.
			other := func(got []byte) {
				if len(got) < 12 || !bytes.Equal(got[6:12], frames["runt"][6:12]) {
					return // one of the kernel's
				}
				for _, f := range frames {
					if bytes.Equal(got, f) {
						return
					}
				}
				t.Errorf("nobody sent these %d bytes: %x", len(got), got[:min(len(got), 60)])
			}
			for name, f := range frames {
				for n := 1; ; n++ {
					if _, err := unix.Write(tx, f); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if receiveFrame(rx, f, 2*time.Second, other) {
						break
					}
					if n == 5 {
						t.Errorf("%s did not arrive unchanged", name)
						break
					}
				}
			}
		})
	}
}

// The legs are in the namespace of the sidecar, which is the device's own: its
// stack must not answer what comes in on a leg.
func TestStackDoesNotSeeLegs(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	b.ns.addr(t, "leg1", "192.168.1.77/24")
	if _, err := a.dev.hasty(t).ping("192.168.1.77", 10, 1); err == nil {
		t.Error("the kernel answered on a leg")
	}
}

func TestTCPOffloads(t *testing.T) {
	features := []string{"tx-checksum-ip-generic", "tx-tcp-segmentation", "tx-generic-segmentation", "rx-gro"}
	type combo struct {
		off   []string
		plain bool
		tune  func(*Options)
	}
	combos := map[string]combo{
		"all on":        {},
		"no TSO":        {off: features[1:2]},
		"no GSO":        {off: features[1:3]},
		"no checksum":   {off: features[:3]},
		"no GRO":        {off: features[3:]},
		"plain":         {plain: true},
		"no UDP GSO":    {tune: func(o *Options) { o.noSegment = true }},
		"IPv6 underlay": {},
	}
	for name, c := range combos {
		t.Run(name, func(t *testing.T) {
			_, a, b := two(t, 1500, 9000, name == "IPv6 underlay", c.tune, func(w *Wire) { w.Plain = c.plain })
			for _, f := range c.off {
				a.dev.feature(t, "eth1", f, false)
			}
			for _, way := range [][2]*testNS{{a.dev, b.dev}, {b.dev, a.dev}} {
				to := "192.168.1.2"
				if way[0] == b.dev {
					to = "192.168.1.1"
				}
				if err := transfer(t, way[0], way[1], to, 20<<20); err != nil {
					t.Errorf("%v: %+v %+v", err, a.fabric.Status(), b.fabric.Status())
				}
			}
		})
	}
}

func TestTCPUnderLoss(t *testing.T) {
	l, a, b := two(t, 1500, 9000, false, nil, nil)
	pathKnown(t, 1500, a, b)
	l.lose(t, 200) // one datagram of 200
	if err := transfer(t, a.dev, b.dev, "192.168.1.2", 20<<20); err != nil {
		t.Error(err)
	}
	eventually(t, "the wire is up", func() bool { return a.status(1).Up && b.status(1).Up })
	if b.fabric.Status().Wires[0].Drops["incomplete"] == 0 {
		t.Error("nothing was lost: the test tests nothing")
	}
}

func TestCarrierBothWays(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	eventually(t, "carrier", func() bool { return a.dev.carrier("eth1") && b.dev.carrier("eth1") })
	for range 3 {
		for _, e := range [][2]*testPod{{a, b}, {b, a}} {
			me, far := e[0], e[1]
			me.dev.down(t, "eth1")
			eventually(t, "far end sees down, and why", func() bool {
				return !far.dev.carrier("eth1") && far.status(1).Reason == reasonFarDown
			})
			me.dev.up(t, "eth1")
			eventually(t, "far end sees up", func() bool { return far.dev.carrier("eth1") && me.dev.carrier("eth1") })
		}
		a.dev.down(t, "eth1")
		b.dev.down(t, "eth1")
		time.Sleep(20 * time.Millisecond) // time for both ends to act; what they observe depends on the order
		b.dev.up(t, "eth1")
		a.dev.up(t, "eth1")
		eventually(t, "both up again", func() bool { return a.dev.carrier("eth1") && b.dev.carrier("eth1") && a.status(1).Up && b.status(1).Up })
	}
}

// A link that either end's impairment takes down is down at both, also for a process that starts,
// and comes back with what its devices had set.
func TestCutTakesBothEndsDown(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	p := a.dev.pinger(t)
	for _, e := range [][2]*testPod{{a, b}, {b, a}} {
		me, far := e[0], e[1]
		me.wires[0].Impairment = &contract.Impairment{Down: true}
		fatal(t, me.fabric.Set(me.wires))
		eventually(t, "both ends see it, and why", func() bool {
			return !me.dev.carrier("eth1") && !far.dev.carrier("eth1") && me.status(1).Reason == reasonCut && far.status(1).Reason == reasonFarDown
		})
		me.stop()
		me.start()
		eventually(t, "it stays down", func() bool { return me.status(1).Reason == reasonCut })
		if me.dev.carrier("eth1") || far.dev.carrier("eth1") {
			t.Error("a restart brought the link up")
		}
		me.wires[0].Impairment = nil
		fatal(t, me.fabric.Set(me.wires))
		eventually(t, "both ends are up", func() bool { return me.dev.carrier("eth1") && far.dev.carrier("eth1") })
		if _, err := p.ping("192.168.1.2", 1000, 1); err != nil {
			t.Error(err)
		}
	}
}

func TestPeerLostMovedAndBack(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	b.stop()
	lost := eventually(t, "carrier down after the peer was killed", func() bool { return !a.dev.carrier("eth1") })
	b.setAddr(99)
	a.lab.mu.Lock()
	a.lab.where["b"] = []netip.Addr{netip.MustParseAddr("10.9.0.2")} // DNS is late
	a.lab.mu.Unlock()
	b.start()
	back := eventually(t, "up at another address", func() bool {
		return a.dev.carrier("eth1") && a.status(1).Up && b.status(1).Up
	})
	if !strings.HasPrefix(a.status(1).Peer, "10.9.0.99:") {
		t.Errorf("the peer is at %s", a.status(1).Peer)
	}
	if _, err := a.dev.pinger(t).ping("192.168.1.2", 100, 1); err != nil {
		t.Error(err)
	}
	t.Logf("lost in %v, back in %v", lost, back)
}

// A sidecar that restarts does not make the device's carrier flap, if it is back
// before its silence makes it a lost one: the last heartbeat is up to 250 ms old.
func TestRestartDoesNotFlap(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	// restart reports whether a carrier was seen to go meanwhile.
	restart := func() (bool, time.Duration) {
		var end, flapped atomic.Bool
		var watch sync.WaitGroup
		eventually(t, "carrier", func() bool { return a.dev.carrier("eth1") && b.dev.carrier("eth1") })
		watch.Go(func() {
			for !end.Load() {
				if !a.dev.carrier("eth1") || !b.dev.carrier("eth1") {
					flapped.Store(true)
				}
				time.Sleep(2 * time.Millisecond)
			}
		})
		begin := time.Now()
		b.stop()
		b.start()
		waitUp(t, 1, a, b)
		took := time.Since(begin)
		time.Sleep(50 * time.Millisecond) // time in which it could flap
		end.Store(true)
		watch.Wait()
		return flapped.Load(), took
	}
	slow := 0
	for good := 0; good < 5; {
		flapped, took := restart()
		switch {
		case took > 400*time.Millisecond:
			if slow++; slow > 100 {
				t.Fatalf("%d restarts took longer than 400 ms, the last one %v", slow, took)
			}
		case flapped:
			t.Fatalf("the carrier flapped in a restart of %v", took)
		default:
			good++
		}
	}
	if slow > 0 {
		t.Logf("%d restarts took too long to tell", slow)
	}
}

// A carrier that the last process took away comes back, whatever was the reason.
func TestStartsFromAnyState(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	for range 3 {
		b.stop()
		eventually(t, "lost", func() bool { return !a.dev.carrier("eth1") })
		a.stop()
		b.ns.down(t, "leg1")
		a.start()
		b.start()
		eventually(t, "up", func() bool { return a.dev.carrier("eth1") && b.dev.carrier("eth1") })
	}
}

// Changes of other wires lose nothing on those that stay.
func TestSetLeavesOthersAlone(t *testing.T) {
	l := newLab(t, 1500, nil)
	a, b, c := l.pod("a"), l.pod("b"), l.pod("c")
	l.wire(1, a, b, 1500, nil)
	l.wire(2, a, c, 1500, nil)
	l.wire(3, b, c, 1500, nil)
	for _, p := range []*testPod{a, b, c} {
		p.start()
	}
	waitUp(t, 1, a, b)
	waitUp(t, 2, a, c)
	waitUp(t, 3, b, c)
	p := a.dev.pinger(t)
	seq := uint16(0)
	for i := range 30 {
		wires := slices.Clone(a.wires)
		if i%2 == 0 {
			wires = wires[:1]
		} else {
			wires[1].Impairment = &contract.Impairment{DelayMS: float64(i)}
		}
		fatal(t, a.fabric.Set(wires))
		for range 10 {
			seq++
			if _, err := p.ping("192.168.1.2", 1000, seq); err != nil {
				t.Fatalf("lost after change %d: %v", i, err)
			}
		}
	}
	fatal(t, a.fabric.Set(a.wires))
	waitUp(t, 2, a, c)
	again := a.dev.hasty(t)
	eventually(t, "an answer on the wire that is back", func() bool { _, err := again.ping("192.168.2.2", 1000, 1); return err == nil })
	if err := a.fabric.Set([]Wire{{ID: 1, PeerPod: "b", Leg: "x"}, {ID: 1, PeerPod: "b", Leg: "x"}}); err == nil {
		t.Error("a wire twice")
	}
}

func TestRecreatedLeg(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	mac := b.dev.link(t, "eth1").Attrs().HardwareAddr
	for range 3 {
		fatal(t, b.ns.h.LinkDel(b.ns.link(t, "leg1")))
		eventually(t, "far end sees it", func() bool { return !a.dev.carrier("eth1") })
		veth(t, b.ns, "leg1", b.dev, "eth1", 1500)
		fatal(t, b.dev.h.LinkSetHardwareAddr(b.dev.link(t, "eth1"), mac))
		b.dev.addr(t, "eth1", "192.168.1.2/24")
		b.wires[0].LegIndex = b.ns.link(t, "leg1").Attrs().Index
		fatal(t, b.fabric.Set(b.wires))
		waitUp(t, 1, a, b)
		p := a.dev.hasty(t) // the kernel's queue on the device begins to work a little later
		eventually(t, "an answer", func() bool { _, err := p.ping("192.168.1.2", 100, 1); return err == nil })
	}
}

func TestVXLANLiveSwitch(t *testing.T) {
	_, a, b := two(t, 1600, 1500, false, nil, func(w *Wire) { w.Datapath = DatapathAuto })
	p := a.dev.pinger(t)
	check := func(datapath string) {
		t.Helper()
		eventually(t, datapath, func() bool {
			return a.status(1).Datapath == datapath && b.status(1).Datapath == datapath && a.status(1).RemoteDatapath == datapath
		})
		for i := range 20 {
			if _, err := p.ping("192.168.1.2", 1472, uint16(i)); err != nil {
				t.Errorf("%s: %v", datapath, err)
			}
		}
	}
	for range 2 {
		check(DatapathVXLAN)
		a.wires[0].Datapath = DatapathUDP // one end is enough
		fatal(t, a.fabric.Set(a.wires))
		check(DatapathUDP)
		a.wires[0].Datapath = DatapathAuto
		a.wires[0].Impairment = &contract.Impairment{DelayMS: 1}
		fatal(t, a.fabric.Set(a.wires))
		check(DatapathUDP)
		a.wires[0].Impairment = nil
		fatal(t, a.fabric.Set(a.wires))
	}
	check(DatapathVXLAN)
	a.stop() // as killed: what it left is picked up
	a.start()
	waitUp(t, 1, a, b)
	check(DatapathVXLAN)
	fatal(t, a.fabric.Set(nil))
	eventually(t, "the device is removed", func() bool { _, err := a.ns.h.LinkByName("c9sv1"); return err != nil })
	if q, err := a.ns.h.FilterList(a.ns.link(t, "leg1"), netlink.HANDLE_MIN_INGRESS); err == nil && len(q) > 0 {
		t.Errorf("filters stay on the leg: %v", q)
	}
}

// A datapath of a package of its own, offered in one line, takes a wire from udp, gives
// it back for an impairment and takes it again.
func TestAnotherDatapath(t *testing.T) {
	hub := memory.NewHub()
	_, a, b := two(t, 1600, 1500, false, func(o *Options) {
		o.more = []offer{{"memory", 1 << 5, 1 << 6, memory.Datapath{Hub: hub}}}
	}, func(w *Wire) { w.Datapath = DatapathAuto })
	p := a.dev.pinger(t)
	check := func(datapath string, carried bool) {
		t.Helper()
		eventually(t, datapath, func() bool {
			return a.status(1).Datapath == datapath && b.status(1).Datapath == datapath && a.status(1).RemoteDatapath == datapath
		})
		before := hub.Frames.Load()
		for i := range 20 {
			if _, err := p.ping("192.168.1.2", 1472, uint16(i)); err != nil {
				t.Errorf("%s: %v", datapath, err)
			}
		}
		if n := hub.Frames.Load() - before; carried && n < 40 || !carried && n > 0 {
			t.Errorf("%s: %d frames of 20 pings went through memory", datapath, n)
		}
	}
	for range 2 {
		check("memory", true)
		a.wires[0].Impairment = &contract.Impairment{DelayMS: 1}
		fatal(t, a.fabric.Set(a.wires))
		check(DatapathUDP, false)
		if why := a.status(1).Why; why != "not memory: impaired; not local: the Pod has no folder of the worker; not vxlan: impaired" {
			t.Errorf("the reason for udp is %q", why)
		}
		a.wires[0].Impairment = nil
		fatal(t, a.fabric.Set(a.wires))
	}
	for _, w := range []*testPod{a, b} {
		w.wires[0].Datapath = DatapathVXLAN
		fatal(t, w.fabric.Set(w.wires))
	}
	check(DatapathVXLAN, false)
}

func TestLocalImpaired(t *testing.T) {
	l := newLab(t, 1500, nil)
	a := l.pod("a")
	other := newNS(t)
	veth(t, a.ns, "legx", a.dev, "eth1", 1500)
	veth(t, a.ns, "legy", other, "eth1", 1500)
	a.dev.addr(t, "eth1", "192.168.1.1/24")
	other.addr(t, "eth1", "192.168.1.2/24")
	a.wires = []Wire{{ID: 1, Leg: "legx", LocalLeg: "legy", MTU: 1500, Impairment: &contract.Impairment{DelayMS: 20}, ReverseImpairment: &contract.Impairment{DelayMS: 10}}}
	a.start()
	waitUp(t, 1, a)
	p := a.dev.pinger(t)
	p.ping("192.168.1.2", 10, 0)
	// None is early, and what is later is the machine's: the least tells of a delay
	// that is there twice.
	least := time.Hour
	for seq := uint16(1); seq <= 50 && least > 60*time.Millisecond; seq++ {
		rtt, err := p.ping("192.168.1.2", 1000, seq)
		if err != nil || rtt < 30*time.Millisecond {
			t.Fatalf("%v %v", rtt, err)
		}
		least = min(least, rtt)
	}
	if least > 60*time.Millisecond {
		t.Errorf("no answer within 60 ms, the fastest after %v", least)
	}
	for _, cut := range []*contract.Impairment{{Down: true}, nil} {
		a.wires[0].ReverseImpairment = cut
		fatal(t, a.fabric.Set(a.wires))
		eventually(t, "carrier", func() bool { return a.dev.carrier("eth1") == (cut == nil) && other.carrier("eth1") == (cut == nil) })
	}
	a.wires[0].Impairment, a.wires[0].ReverseImpairment = nil, nil
	fatal(t, a.fabric.Set(a.wires))
	if err := transfer(t, a.dev, other, "192.168.1.2", 20<<20); err != nil {
		t.Error(err)
	}
	other.down(t, "eth1")
	eventually(t, "carrier", func() bool { return !a.dev.carrier("eth1") })
	other.up(t, "eth1")
	eventually(t, "carrier", func() bool { return a.dev.carrier("eth1") && other.carrier("eth1") })
}

// One percent of loss is one percent of the packets, of super-frames too.
func TestImpairedWire(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, func(w *Wire) { w.Impairment = &contract.Impairment{Loss: 1, Seed: 7} })
	if err := transfer(t, a.dev, b.dev, "192.168.1.2", 8<<20); err != nil {
		t.Error(err)
	}
	s := a.status(1)
	lost := float64(s.Drops["impairment-loss"]) / float64(s.TxFrames+s.Drops["impairment-loss"])
	if lost < 0.005 || lost > 0.02 || s.TxFrames < 5700 {
		t.Errorf("%.4f of %d lost", lost, s.TxFrames)
	}
}

// 300 changes leave nothing behind.
func TestNoLeaks(t *testing.T) {
	l := newLab(t, 1600, nil)
	a, b := l.pod("a"), l.pod("b")
	for id := 1; id <= 4; id++ {
		l.wire(id, a, b, 1500, func(w *Wire) { w.Datapath = DatapathAuto })
	}
	a.start()
	b.start()
	waitUp(t, 4, a, b)
	count := func() (int, int, int) {
		fds, _ := os.ReadDir("/proc/self/fd")
		list, _ := a.ns.h.LinkList()
		return len(fds), runtime.NumGoroutine(), len(list)
	}
	settle := func() {
		for id := 1; id <= 4; id++ {
			waitUp(t, id, a, b)
			eventually(t, "vxlan", func() bool { return a.status(id).Datapath == DatapathVXLAN })
		}
	}
	settle()
	fds, goroutines, links := count()
	for i := range 300 {
		wires := slices.Clone(a.wires)
		wires = slices.Delete(wires, i%4, i%4+1)
		wires[i%3].Impairment = &contract.Impairment{DelayMS: 1}
		fatal(t, a.fabric.Set(wires))
		if i%10 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	fatal(t, a.fabric.Set(a.wires))
	settle()
	eventually(t, "nothing is left", func() bool {
		f, g, n := count()
		return f <= fds+2 && g <= goroutines+2 && n == links
	})
}

// A leg whose end was told in a message that got lost is found again by its name.
func TestLostMessage(t *testing.T) {
	_, a, _ := two(t, 1500, 1500, false, nil, nil)
	f := a.fabric
	f.mu.Lock()
	l := f.wires[1].legs[0]
	right := l.index
	l.index = right + 1_000_000 // the leg before, which is gone
	f.mu.Unlock()
	all, err := a.ns.h.LinkList()
	fatal(t, err)
	f.onlyLinks(all)
	for _, link := range all {
		f.linkSeen(link, false)
	}
	f.mu.Lock()
	index := l.index
	f.mu.Unlock()
	if index != right {
		t.Errorf("the leg is looked for at index %d, and is at %d", index, right)
	}
	waitUp(t, 1, a)
}

// The kernel is asked for a leg, a notice of a change comes first, and then the
// answer, which is older. Nobody would correct it.
func TestOldAnswer(t *testing.T) {
	_, a, _ := two(t, 1500, 1500, false, nil, nil)
	f := a.fabric
	index := a.ns.link(t, "leg1").Attrs().Index
	asked := 0
	_, err := f.lookAt(func() (netlink.Link, error) {
		now, err := a.ns.h.LinkByIndex(index)
		fatal(t, err)
		if asked++; asked == 1 {
			f.linkSeen(now, false)
			now.Attrs().RawFlags &^= unix.IFF_LOWER_UP // as it was before
		}
		return now, nil
	})
	fatal(t, err)
	f.mu.Lock()
	device := f.wires[1].legs[0].device
	f.mu.Unlock()
	if asked < 2 || !device {
		t.Errorf("after %d questions the device is up: %v", asked, device)
	}
	if _, err := f.lookAt(func() (netlink.Link, error) {
		now, err := a.ns.h.LinkByIndex(index)
		f.linkSeen(now, false)
		return now, err
	}); err == nil {
		t.Error("it asks for ever")
	}
}
