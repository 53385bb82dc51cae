//go:build linux

package wire

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// needRoot skips what makes network namespaces.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
}

// testNS is a network namespace without a name: it ends with the test's process.
type testNS struct {
	fd    int
	h     *netlink.Handle
	ended sync.Once
}

// end gives the namespace back, before the test's end if there are many.
func (n *testNS) end() { n.ended.Do(func() { n.h.Close(); unix.Close(n.fd) }) }

func newNS(t testing.TB) *testNS {
	t.Helper()
	n := &testNS{}
	errs := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			errs <- err
			return
		}
		var err error
		n.fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		os.WriteFile("/proc/sys/net/ipv6/conf/all/accept_dad", []byte("0"), 0)
		os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0)
		errs <- err
	}()
	fatal(t, <-errs)
	var err error
	n.h, err = netlink.NewHandleAt(netns.NsHandle(n.fd), unix.NETLINK_ROUTE)
	fatal(t, err)
	lo, err := n.h.LinkByName("lo")
	fatal(t, err)
	fatal(t, n.h.LinkSetUp(lo))
	t.Cleanup(n.end)
	return n
}

// do runs fn on a thread in the namespace. Sockets that it opens stay there.
func (n *testNS) do(fn func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
			panic(err)
		}
		fn()
	})
	wg.Wait()
}

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// veth makes a pair with one side in each namespace, both up.
func veth(t testing.TB, a *testNS, nameA string, b *testNS, nameB string, mtu int) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = nameA, mtu
	fatal(t, a.h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerNamespace: netlink.NsFd(b.fd)}))
	a.up(t, nameA)
	b.up(t, nameB)
}

func (n *testNS) link(t testing.TB, name string) netlink.Link {
	t.Helper()
	l, err := n.h.LinkByName(name)
	fatal(t, err)
	return l
}

func (n *testNS) up(t testing.TB, name string) { fatal(t, n.h.LinkSetUp(n.link(t, name))) }

func (n *testNS) down(t testing.TB, name string) { fatal(t, n.h.LinkSetDown(n.link(t, name))) }

func (n *testNS) addr(t testing.TB, name, prefix string) {
	t.Helper()
	a, err := netlink.ParseAddr(prefix)
	fatal(t, err)
	if a.IP.To4() == nil {
		a.Flags = unix.IFA_F_NODAD
	}
	fatal(t, n.h.AddrAdd(n.link(t, name), a))
}

// carrier reports whether an interface has one.
func (n *testNS) carrier(name string) bool {
	l, err := n.h.LinkByName(name)
	return err == nil && l.Attrs().RawFlags&unix.IFF_LOWER_UP != 0
}

// testLab is a bridge that stands for the Pod network, and Pods on it.
type testLab struct {
	t     testing.TB
	under *testNS
	mtu   int
	v6    bool
	pods  map[string]*testPod
	ports int
	mu    sync.Mutex
	where map[string][]netip.Addr
	tune  func(*Options)
}

type testPod struct {
	lab    *testLab
	name   string
	ns     *testNS
	dev    *testNS // of the devices
	addr   netip.Addr
	fabric *Fabric
	cancel context.CancelFunc
	done   chan struct{}
	wires  []Wire
	port   string
	proc   *process // the last that was started
	// worker is the folder of the Pod's worker, nil for none.
	worker *os.File
}

func newLab(t testing.TB, mtu int, tune func(*Options)) *testLab {
	needRoot(t)
	l := &testLab{t: t, under: newNS(t), mtu: mtu, pods: map[string]*testPod{}, where: map[string][]netip.Addr{}, tune: tune}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "br0", mtu
	fatal(t, l.under.h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	l.under.up(t, "br0")
	return l
}

// Lookup is Resolver's.
func (l *testLab) Lookup(_ context.Context, pod string) ([]netip.Addr, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]netip.Addr(nil), l.where[pod]...), nil
}

// pod makes a Pod on the underlay, and a namespace for its devices.
func (l *testLab) pod(name string) *testPod {
	p := &testPod{lab: l, name: name, ns: newNS(l.t), dev: newNS(l.t)}
	l.ports++
	p.port = fmt.Sprintf("port%d", l.ports)
	veth(l.t, p.ns, "c9s0", l.under, p.port, l.mtu)
	fatal(l.t, l.under.h.LinkSetMaster(l.under.link(l.t, p.port), l.under.link(l.t, "br0")))
	p.setAddr(l.ports)
	l.pods[name] = p
	l.t.Cleanup(p.stop)
	return p
}

// setAddr gives the Pod its n-th address instead of the one it had.
func (p *testPod) setAddr(n int) {
	l := p.lab
	c9s0 := p.ns.link(l.t, "c9s0")
	old, _ := p.ns.h.AddrList(c9s0, netlink.FAMILY_ALL)
	for _, a := range old {
		if !a.IP.IsLinkLocalUnicast() {
			p.ns.h.AddrDel(c9s0, &a)
		}
	}
	bits := 24
	p.addr = netip.AddrFrom4([4]byte{10, 9, 0, byte(n)})
	if l.v6 {
		p.addr, bits = netip.MustParseAddr(fmt.Sprintf("fd00:9::%d", n)), 64
	}
	p.ns.addr(l.t, "c9s0", fmt.Sprintf("%s/%d", p.addr, bits))
	l.mu.Lock()
	l.where[p.name] = []netip.Addr{p.addr}
	l.mu.Unlock()
}

// worker makes the folder of a worker.
func worker(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Open(t.TempDir())
	fatal(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// wire adds a wire between two Pods: interface eth<id> in the device's namespace.
func (l *testLab) wire(id int, a, b *testPod, mtu int, edit func(*Wire)) {
	for _, e := range [][2]*testPod{{a, b}, {b, a}} {
		p, peer := e[0], e[1]
		w := Wire{ID: contract.WireID(id), PeerPod: peer.name, Leg: fmt.Sprintf("leg%d", id), MTU: mtu, Datapath: DatapathUDP}
		dev := fmt.Sprintf("eth%d", id)
		if a == b {
			l.t.Fatal("use local wires")
		}
		veth(l.t, p.ns, w.Leg, p.dev, dev, mtu)
		n := 1
		if p == b {
			n = 2
		}
		p.dev.addr(l.t, dev, fmt.Sprintf("192.168.%d.%d/24", id, n))
		p.dev.addr(l.t, dev, fmt.Sprintf("fd01:%d::%d/64", id, n))
		w.LegIndex = p.ns.link(l.t, w.Leg).Attrs().Index
		if edit != nil {
			edit(&w)
		}
		p.wires = append(p.wires, w)
	}
}

// start runs the Pod's fabric.
func (p *testPod) start() {
	p.lab.t.Helper()
	opt := Options{Lab: "lab", Pod: p.name, Key: []byte("a key for tests"), Underlay: "c9s0", Resolver: p.lab}
	if p.worker != nil {
		opt.Folder = int(p.worker.Fd())
	}
	if p.lab.tune != nil {
		p.lab.tune(&opt)
	}
	var err error
	p.ns.do(func() { p.fabric, err = New(opt) })
	fatal(p.lab.t, err)
	fatal(p.lab.t, p.fabric.Set(p.wires))
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	f, done := p.fabric, p.done
	go func() {
		defer close(done)
		if err := f.Run(ctx); err != nil {
			p.lab.t.Error(err)
		}
	}()
}

// stop ends the fabric as a restart does.
func (p *testPod) stop() {
	if p.fabric != nil {
		p.cancel()
		<-p.done
		p.fabric.Close()
		p.fabric = nil
	}
}

// status of one wire.
func (p *testPod) status(id int) WireStatus {
	for _, w := range p.fabric.Status().Wires {
		if int(w.ID) == id {
			return w
		}
	}
	return WireStatus{}
}

// patience is how long a test waits for what is to happen: for ever, by the measure
// of a machine that has other things to do too. How long it took is no test's
// subject.
const patience = time.Minute

// eventually waits for a condition, and tells how long that took.
func eventually(t testing.TB, what string, cond func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !cond() {
		if time.Since(start) > patience {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(start)
}

// waitUp waits until a wire is up at both ends.
func waitUp(t testing.TB, id int, pods ...*testPod) {
	t.Helper()
	start := time.Now()
	for _, p := range pods {
		for !p.status(id).Up {
			if time.Since(start) > patience {
				t.Fatalf("wire %d of %s is not up: %+v %v", id, p.name, p.status(id), p.fabric.Status().Dropped)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// pinger sends ICMP echo requests from a namespace.
type pinger struct {
	fd    int
	limit time.Duration // for an answer
}

// pinger waits so long for an answer that one that does not come is lost, not late.
func (n *testNS) pinger(t testing.TB) *pinger { return n.pingerFor(t, 5*time.Second) }

// hasty is for those who ask again, or expect no answer.
func (n *testNS) hasty(t testing.TB) *pinger { return n.pingerFor(t, 200*time.Millisecond) }

func (n *testNS) pingerFor(t testing.TB, limit time.Duration) *pinger {
	p := &pinger{limit: limit}
	var err error
	n.do(func() { p.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP) })
	fatal(t, err)
	fatal(t, unix.SetsockoptInt(p.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE))
	wait := unix.NsecToTimeval(int64(limit))
	fatal(t, unix.SetsockoptTimeval(p.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait))
	t.Cleanup(func() { unix.Close(p.fd) })
	return p
}

// ping sends one with size bytes of payload and checks what comes back.
func (p *pinger) ping(to string, size int, seq uint16) (time.Duration, error) {
	msg := make([]byte, 8+size)
	msg[0] = 8
	msg[6], msg[7] = byte(seq>>8), byte(seq)
	for i := range size {
		msg[8+i] = byte(i*7 + int(seq))
	}
	c := ^virtio.Fold(virtio.AddSum(0, msg))
	msg[2], msg[3] = byte(c>>8), byte(c)
	start := time.Now()
	if err := unix.Sendto(p.fd, msg, 0, &unix.SockaddrInet4{Addr: [4]byte(net.ParseIP(to).To4())}); err != nil {
		return 0, err
	}
	buf := make([]byte, 65536)
	for {
		n, _, err := unix.Recvfrom(p.fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		got := buf[20:n]
		if got[0] != 0 || got[6] != msg[6] || got[7] != msg[7] {
			if time.Since(start) > max(p.limit, time.Second) {
				return 0, unix.EAGAIN
			}
			continue
		}
		if string(got[8:]) != string(msg[8:]) {
			return 0, fmt.Errorf("the answer of %d bytes differs", len(got)-8)
		}
		return time.Since(start), nil
	}
}
