//go:build linux

package wire

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The subjects: each joins the namespaces of two devices, whose interfaces are
// eth1 with 192.168.1.1 and .2.
type subject struct {
	name string
	make func(t testing.TB, mtu int) (a, b *testNS, stop func())
}

func subjects() []subject {
	fabric := func(datapath string, under int, encrypt bool) func(testing.TB, int) (*testNS, *testNS, func()) {
		return func(t testing.TB, mtu int) (*testNS, *testNS, func()) {
			under := under
			if under == 0 {
				under = mtu + 100
			}
			l := newLab(t, under, nil)
			a, b := l.pod("a"), l.pod("b")
			a.worker = worker(t)
			b.worker = a.worker
			l.wire(1, a, b, mtu, func(w *Wire) { w.Datapath = datapath })
			x, y := a.process(encrypt), b.process(encrypt)
			x.ready()
			y.ready()
			return a.dev, b.dev, func() { x.stop(); y.stop() }
		}
	}
	return []subject{
		{"veth", func(t testing.TB, mtu int) (*testNS, *testNS, func()) {
			a, b := newNS(t), newNS(t)
			veth(t, a, "eth1", b, "eth1", mtu)
			a.addr(t, "eth1", "192.168.1.1/24")
			b.addr(t, "eth1", "192.168.1.2/24")
			return a, b, func() {}
		}},
		{"kernel VXLAN", func(t testing.TB, mtu int) (*testNS, *testNS, func()) { return kernelVXLAN(t, mtu, mtu+100, true) }},
		{"kernel VXLAN, fragments", func(t testing.TB, mtu int) (*testNS, *testNS, func()) { return kernelVXLAN(t, mtu, 1500, false) }},
		{"udp", fabric(DatapathUDP, 1500, false)},
		{"udp, encrypted", fabric(DatapathUDP, 1500, true)},
		{"local", fabric(DatapathLocal, 1500, false)},
		{"vxlan", fabric(DatapathVXLAN, 0, false)},
		{"vxlan, fragments", fabric(DatapathVXLAN, 1500, false)},
	}
}

// kernelVXLAN is a VXLAN device in each of two namespaces on a bridged underlay.
func kernelVXLAN(t testing.TB, mtu, under int, lower bool) (*testNS, *testNS, func()) {
	l := newLab(t, under, nil)
	a, b := l.pod("a"), l.pod("b")
	for _, e := range [][2]*testPod{{a, b}, {b, a}} {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = "eth1", mtu
		v := &netlink.Vxlan{LinkAttrs: attrs, VxlanId: 1, Group: e[1].addr.AsSlice(), Port: 4789}
		if lower {
			v.VtepDevIndex = e[0].ns.link(t, "c9s0").Attrs().Index
		}
		fatal(t, e[0].ns.h.LinkAdd(v))
		e[0].ns.up(t, "eth1")
	}
	a.ns.addr(t, "eth1", "192.168.1.1/24")
	b.ns.addr(t, "eth1", "192.168.1.2/24")
	return a.ns, b.ns, func() {}
}

func seconds(name string, def float64) time.Duration {
	fmt.Sscan(os.Getenv(name), &def)
	return time.Duration(def * float64(time.Second))
}

// BenchmarkWire measures all subjects in turn and prints a table. WIRE_ROUNDS,
// WIRE_SECONDS (of one measurement) and WIRE_ONLY (names, with commas) change it.
func BenchmarkWire(b *testing.B) {
	needRoot(b)
	rounds := 5
	fmt.Sscan(os.Getenv("WIRE_ROUNDS"), &rounds)
	d := seconds("WIRE_SECONDS", 1)
	type cell struct{ tcp1500, tcp9000, pps, rtt []float64 }
	got := map[string]*cell{}
	for range rounds {
		for _, s := range subjects() {
			if only := os.Getenv("WIRE_ONLY"); only != "" && !slices.Contains(strings.Split(only, ","), s.name) {
				continue
			}
			c := got[s.name]
			if c == nil {
				c = &cell{}
				got[s.name] = c
			}
			x, y, stop := s.make(b, 1500)
			c.rtt = append(c.rtt, pingMedian(b, x, 400))
			c.tcp1500 = append(c.tcp1500, tcpRate(b, x, y, d))
			c.pps = append(c.pps, packetRate(b, x, y, d))
			stop()
			x, y, stop = s.make(b, 9000)
			c.tcp9000 = append(c.tcp9000, tcpRate(b, x, y, d))
			stop()
		}
	}
	b.ReportMetric(0, "ns/op")
	base := got["kernel VXLAN"]
	fmt.Printf("\n| datapath | TCP, MTU 1500 | ratio | TCP, MTU 9000 | ratio | 64-byte packets | ratio | RTT | above |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, s := range subjects() {
		c := got[s.name]
		if c == nil {
			continue
		}
		ratio := func(of func(*cell) []float64) string {
			if base == nil {
				return "–"
			}
			return fmt.Sprintf("%.2f", median(of(c))/median(of(base)))
		}
		above := "–"
		if base != nil {
			above = fmt.Sprintf("%+.0f µs", median(c.rtt)-median(base.rtt))
		}
		fmt.Printf("| %s | %.1f Gbit/s | %s | %.1f Gbit/s | %s | %.0f/s | %s | %.0f µs | %s |\n", s.name,
			median(c.tcp1500), ratio(func(c *cell) []float64 { return c.tcp1500 }),
			median(c.tcp9000), ratio(func(c *cell) []float64 { return c.tcp9000 }),
			median(c.pps), ratio(func(c *cell) []float64 { return c.pps }),
			median(c.rtt), above)
	}
	if v, l := got["veth"], got["local"]; v != nil && l != nil {
		// Round by round: the machine's speed may change between them.
		beside := func(of func(*cell) []float64) string {
			return fmt.Sprintf("%.2f", median(pairs(of(l), of(v), func(l, v float64) float64 { return l / v })))
		}
		fmt.Printf("\nlocal beside veth, medians of rounds: TCP %s at MTU 1500 and %s at 9000, packets %s, round trip %+.0f µs\n",
			beside(func(c *cell) []float64 { return c.tcp1500 }), beside(func(c *cell) []float64 { return c.tcp9000 }), beside(func(c *cell) []float64 { return c.pps }),
			median(pairs(l.rtt, v.rtt, func(l, v float64) float64 { return l - v })))
	}
}

// pairs compares two lists, value by value.
func pairs(a, b []float64, compare func(a, b float64) float64) (out []float64) {
	for i := range a {
		out = append(out, compare(a[i], b[i]))
	}
	return out
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// pingMedian is the median round trip in microseconds of n echoes.
func pingMedian(t testing.TB, from *testNS, n int) float64 {
	p := from.hasty(t)
	var all []float64
	for i := range n {
		d, err := p.ping("192.168.1.2", 56, uint16(i))
		if err == nil {
			all = append(all, float64(d)/float64(time.Microsecond))
		}
		time.Sleep(time.Millisecond)
	}
	if len(all) == 0 {
		t.Fatal("no echo came back")
	}
	return median(all)
}

// tcpRate is what one TCP flow carries, Gbit/s, after a start of a fifth of d.
func tcpRate(t testing.TB, a, b *testNS, d time.Duration) float64 {
	var ln, in, out int
	var err error
	b.do(func() {
		ln, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		fatal(t, err)
		unix.SetsockoptInt(ln, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		fatal(t, unix.Bind(ln, &unix.SockaddrInet4{Port: 5201}))
		fatal(t, unix.Listen(ln, 1))
	})
	a.do(func() {
		out, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		fatal(t, err)
		fatal(t, connect(out, &unix.SockaddrInet4{Port: 5201, Addr: [4]byte{192, 168, 1, 2}}))
	})
	in, _, err = unix.Accept(ln)
	fatal(t, err)
	unix.Close(ln)
	var received atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 256<<10)
		for {
			n, err := unix.Read(in, buf)
			if n <= 0 || err != nil {
				return
			}
			received.Add(int64(n))
		}
	}()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		buf := make([]byte, 256<<10)
		for {
			if _, err := unix.Write(out, buf); err != nil {
				return
			}
		}
	}()
	time.Sleep(d / 5)
	from, start := received.Load(), time.Now()
	time.Sleep(d)
	rate := float64(received.Load()-from) * 8 / time.Since(start).Seconds() / 1e9
	unix.Shutdown(out, unix.SHUT_RDWR)
	unix.Shutdown(in, unix.SHUT_RDWR)
	<-done
	<-stopped
	unix.Close(in)
	unix.Close(out)
	return rate
}

// packetRate is how many UDP packets of 64 bytes (22 of payload) are received a
// second while one sender sends as many as it can.
func packetRate(t testing.TB, a, b *testNS, d time.Duration) float64 {
	var in, out int
	var err error
	b.do(func() {
		in, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		fatal(t, err)
		fatal(t, unix.Bind(in, &unix.SockaddrInet4{Port: 5202}))
		unix.SetsockoptInt(in, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
		fatal(t, unix.SetsockoptTimeval(in, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}))
	})
	a.do(func() {
		out, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		fatal(t, err)
		fatal(t, connect(out, &unix.SockaddrInet4{Port: 5202, Addr: [4]byte{192, 168, 1, 2}}))
	})
	var stop atomic.Bool
	var received atomic.Int64
	done := make(chan struct{}, 2)
	go func() {
		r, err := datapath.NewRxBatch()
		fatal(t, err)
		r.Prepare(false, true, datapath.Slots)
		for !stop.Load() {
			p := []unix.PollFd{{Fd: int32(in), Events: unix.POLLIN}}
			unix.Poll(p, 50)
			n, _ := r.Recv(in)
			received.Add(int64(n))
		}
		r.Free()
		done <- struct{}{}
	}()
	go func() {
		tx := &datapath.TxBatch{FD: out, Failed: func(int, unix.Errno) {}}
		payload := make([]byte, 22)
		for !stop.Load() {
			for range datapath.TxMsgs {
				tx.Start()
				tx.Piece(payload)
			}
			tx.Flush()
		}
		done <- struct{}{}
	}()
	time.Sleep(d / 5)
	from, start := received.Load(), time.Now()
	time.Sleep(d)
	rate := float64(received.Load()-from) / time.Since(start).Seconds()
	stop.Store(true)
	<-done
	<-done
	unix.Close(in)
	unix.Close(out)
	return rate
}
