package mgmt

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/link"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// testPod is a sidecar's namespace and a device's.
type testPod struct {
	*testing.T
	own, dev     *nspace.Namespace
	nlOwn, nlDev *netlink.Handle
}

func newTestPod(t *testing.T) *testPod {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	p := &testPod{T: t}
	p.own, p.nlOwn = p.namespace()
	p.dev, p.nlDev = p.namespace()
	return p
}

func (p *testPod) namespace() (*nspace.Namespace, *netlink.Handle) {
	p.Helper()
	ns, err := nspace.New()
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { ns.Close() })
	nl, err := netlink.NewHandleAt(netns.NsHandle(ns.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(nl.Close)
	return ns, nl
}

// addrs are the addresses of an interface but link-local ones.
func (p *testPod) addrs(nl *netlink.Handle, name string) (out []string) {
	p.Helper()
	l, err := nl.LinkByName(name)
	if err != nil {
		p.Fatalf("%s: %v", name, err)
	}
	list, err := nl.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		p.Fatal(err)
	}
	for _, a := range list {
		if !a.IP.IsLinkLocalUnicast() {
			out = append(out, a.IPNet.String())
		}
	}
	return out
}

// ensure has the router do a round, with the mesh on an underlay.
func (p *testPod) ensure(r *Router) {
	p.Helper()
	err := p.own.Do(func() error {
		snap, err := link.Read(p.nlOwn)
		if err != nil {
			return err
		}
		return errors.Join(r.Rules(), r.Ensure(snap, snap.ByName(MeshName)))
	})
	if err != nil {
		p.Fatal(err)
	}
}

// interfaces makes interfaces that a router expects besides its own.
func (p *testPod) interfaces(names ...string) {
	p.Helper()
	for _, name := range names {
		l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "peer"}
		if err := errors.Join(p.nlOwn.LinkAdd(l), p.nlOwn.LinkSetUp(l)); err != nil {
			p.Fatal(err)
		}
	}
}

func testMgmt(n int) *contract.Mgmt {
	return &contract.Mgmt{
		Interface: "eth0", MAC: "02:00:00:00:00:01", MTU: 1400,
		IPv4: netip.MustParsePrefix(fmt.Sprintf("172.20.20.%d/24", n)), GatewayV4: netip.MustParseAddr("172.20.20.1"),
		IPv6: netip.MustParsePrefix(fmt.Sprintf("3fff:172:20:20::%d/64", n)), GatewayV6: netip.MustParseAddr("3fff:172:20:20::1"),
	}
}

func TestRouter(t *testing.T) {
	p := newTestPod(t)
	p.interfaces(UnderlayName, MeshName)
	r := NewRouter(p.nlOwn, p.own.FD(), p.dev, p.nlDev)
	r.Set(testMgmt(11), nil, nil)
	p.ensure(r)
	if got := fmt.Sprint(p.addrs(p.nlDev, "eth0")); got != "[172.20.20.11/24 3fff:172:20:20::11/64]" {
		t.Errorf("eth0 has %s", got)
	}
	if got := fmt.Sprint(p.addrs(p.nlOwn, LegName)); got != "[172.20.20.1/32 3fff:172:20:20::1/128]" {
		t.Errorf("the leg has %s", got)
	}
	eth0, err := p.nlDev.LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	if a := eth0.Attrs(); a.MTU != 1400 || a.HardwareAddr.String() != "02:00:00:00:00:01" {
		t.Errorf("MTU %d, MAC %s", a.MTU, a.HardwareAddr)
	}
	for _, family := range families {
		routes, err := p.nlDev.RouteListFiltered(family, &netlink.Route{LinkIndex: eth0.Attrs().Index}, netlink.RT_FILTER_OIF)
		found := false
		for _, route := range routes {
			found = found || route.Gw != nil && (route.Gw.Equal(net.ParseIP("172.20.20.1")) || route.Gw.Equal(net.ParseIP("3fff:172:20:20::1")))
		}
		if err != nil || !found {
			t.Errorf("no default route of family %d: %v %v", family, routes, err)
		}
		rules, err := p.nlOwn.RuleList(family)
		mine := 0
		for _, rule := range rules {
			if rule.Table == TableMgmt {
				mine++
			}
		}
		if err != nil || mine != 4 {
			t.Errorf("%d rules of family %d lead to the management table: %v", mine, family, err)
		}
	}
	// A second round changes nothing, also after a restart.
	next := NewRouter(p.nlOwn, p.own.FD(), p.dev, p.nlDev)
	next.Set(testMgmt(11), nil, nil)
	p.ensure(next)
	if again, err := p.nlDev.LinkByName("eth0"); err != nil || again.Attrs().Index != eth0.Attrs().Index {
		t.Errorf("eth0 was recreated: %v %v", again, err)
	}
	// Another address takes the place of the first; what the device added stays.
	if err := p.nlDev.AddrAdd(eth0, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 0, 0, 1), Mask: net.CIDRMask(24, 32)}}); err != nil {
		t.Fatal(err)
	}
	r.Set(testMgmt(12), nil, nil)
	p.ensure(r)
	if got := fmt.Sprint(p.addrs(p.nlDev, "eth0")); got != "[10.0.0.1/24 172.20.20.12/24 3fff:172:20:20::12/64]" {
		t.Errorf("eth0 has %s", got)
	}
	r.Set(nil, nil, nil)
	p.ensure(r)
	if _, err := p.nlDev.LinkByName("eth0"); err == nil {
		t.Error("eth0 is left without a management network")
	}
	if rules, err := p.nlOwn.RuleList(netlink.FAMILY_V4); err != nil || len(rules) != 3 {
		t.Errorf("rules %v, %v", rules, err)
	}
}

// With legs of other interfaces on the management network, the router's leg is a bridge.
func TestRouterBridged(t *testing.T) {
	p := newTestPod(t)
	p.interfaces(UnderlayName, MeshName, "c9sg1")
	r := NewRouter(p.nlOwn, p.own.FD(), p.dev, p.nlDev)
	for _, bridged := range [][]string{{"c9sg1"}, nil} {
		r.Set(testMgmt(11), bridged, nil)
		p.ensure(r)
		leg, err := p.nlOwn.LinkByName(LegName)
		if err != nil {
			t.Fatal(err)
		}
		other, err := p.nlOwn.LinkByName("c9sg1")
		if err != nil {
			t.Fatal(err)
		}
		want := "veth"
		if bridged != nil {
			want = "bridge"
			if other.Attrs().MasterIndex != leg.Attrs().Index {
				t.Error("the other leg is not a port")
			}
		}
		if leg.Type() != want {
			t.Errorf("with %v the leg is a %s", bridged, leg.Type())
		}
		if got := fmt.Sprint(p.addrs(p.nlOwn, LegName)); got != "[172.20.20.1/32 3fff:172:20:20::1/128]" {
			t.Errorf("with %v the leg has %s", bridged, got)
		}
	}
}

// The cluster's interface moves with all that the CNI plugin gave it, and a killed
// sidecar's successor finds that in the file.
func TestUnderlay(t *testing.T) {
	p := newTestPod(t)
	pod := netip.MustParseAddr("10.1.0.5")
	// The device's side is the Pod's eth0; the other one is the worker's.
	if err := p.nlDev.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0", MTU: 1450}, PeerName: "worker"}); err != nil {
		t.Fatal(err)
	}
	eth0, err := p.nlDev.LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	worker, err := p.nlDev.LinkByName("worker")
	if err != nil {
		t.Fatal(err)
	}
	gateway := net.IPv4(169, 254, 1, 1)
	err = errors.Join(
		p.nlDev.AddrAdd(eth0, &netlink.Addr{IPNet: &net.IPNet{IP: pod.AsSlice(), Mask: net.CIDRMask(32, 32)}}),
		p.nlDev.LinkSetUp(eth0), p.nlDev.LinkSetUp(worker),
		p.nlDev.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Dst: &net.IPNet{IP: gateway, Mask: net.CIDRMask(32, 32)}, Scope: netlink.SCOPE_LINK}),
		p.nlDev.RouteAdd(&netlink.Route{LinkIndex: eth0.Attrs().Index, Gw: gateway, MTU: 1400}),
		p.nlDev.NeighAdd(&netlink.Neigh{LinkIndex: eth0.Attrs().Index, IP: gateway, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}, State: netlink.NUD_PERMANENT}))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "underlay.json")
	for _, round := range []string{"first", "after a restart", "after a loss"} {
		u := NewUnderlay(p.nlOwn, p.nlDev, p.own.FD(), file, []netip.Addr{pod})
		l, err := u.Ensure()
		if err != nil {
			t.Fatalf("%s: %v", round, err)
		}
		if l.Attrs().MTU != 1400 {
			t.Errorf("%s: the route's MTU is not taken: %d", round, l.Attrs().MTU)
		}
		if got := fmt.Sprint(p.addrs(p.nlOwn, UnderlayName)); got != "[10.1.0.5/32]" {
			t.Errorf("%s: addresses %s", round, got)
		}
		routes, err := p.nlOwn.RouteList(l, netlink.FAMILY_V4)
		if err != nil || len(routes) != 2 {
			t.Errorf("%s: routes %v, %v", round, routes, err)
		}
		neighbours, err := p.nlOwn.NeighList(l.Attrs().Index, netlink.FAMILY_V4)
		if err != nil || len(neighbours) != 1 || neighbours[0].State != netlink.NUD_PERMANENT {
			t.Errorf("%s: neighbours %v, %v", round, neighbours, err)
		}
		// Setting it down takes the routes, as a kill between two steps may.
		if err := p.nlOwn.LinkSetDown(l); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.nlDev.LinkByName("eth0"); err == nil {
		t.Error("the device still has the cluster's interface")
	}
	nobody := NewUnderlay(p.nlDev, p.nlOwn, p.own.FD(), filepath.Join(t.TempDir(), "x.json"), []netip.Addr{netip.MustParseAddr("10.1.0.99")})
	if _, err := nobody.Ensure(); err == nil {
		t.Error("no interface has the Pod's address, and nothing is reported")
	}
}

func TestMesh(t *testing.T) {
	p := newTestPod(t)
	p.interfaces(UnderlayName)
	pod := netip.MustParseAddr("10.1.0.5")
	ensure := func(lab string) netlink.Link {
		t.Helper()
		var mesh netlink.Link
		err := p.own.Do(func() error {
			snap, err := link.Read(p.nlOwn)
			if err != nil {
				return err
			}
			mesh, err = NewMesh(p.nlOwn, lab, "r1", pod).Ensure(snap, snap.ByName(UnderlayName))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return mesh
	}
	first := ensure("ns/lab")
	if a := first.Attrs(); a.MTU != 1500-overheadV4 || a.HardwareAddr.String() != MAC("r1").String() || first.(*netlink.Vxlan).VxlanId != VNI("ns/lab") {
		t.Errorf("%+v", first)
	}
	if again := ensure("ns/lab"); again.Attrs().Index != first.Attrs().Index {
		t.Error("it was recreated")
	}
	if other := ensure("ns/other"); other.(*netlink.Vxlan).VxlanId != VNI("ns/other") {
		t.Errorf("another lab has VNI %d", other.(*netlink.Vxlan).VxlanId)
	}
	if VNI("a") == VNI("b") || VNI("a") < 1 || VNI("a") > 1<<24-1 {
		t.Errorf("VNIs %d and %d", VNI("a"), VNI("b"))
	}
	if m := MAC("r1"); m[0]&1 != 0 || m[0]&2 == 0 || m.String() == MAC("r2").String() {
		t.Errorf("MAC %s", m)
	}
}

// sessions are those of a test: the addresses of the Pods that are alive.
type sessions struct{ addrs map[string]netip.Addr }

func (s *sessions) Keep(map[string]bool)   {}
func (s *sessions) SetLab(map[string]bool) {}

func (s *sessions) Peers() []wire.Peer {
	var out []wire.Peer
	for pod, a := range s.addrs {
		out = append(out, wire.Peer{Pod: pod, Addr: a})
	}
	return out
}

// TestLostPeerIsReported: a peer that was in use when it was lost stays in the list, without
// an address, until it has not been asked for in the time that a forwarding entry lives.
func TestLostPeerIsReported(t *testing.T) {
	p := newTestPod(t)
	p.interfaces(UnderlayName)
	pod, other, mgmt := netip.MustParseAddr("10.1.0.5"), netip.MustParseAddr("10.1.0.6"), netip.MustParseAddr("172.20.20.3")
	err := p.own.Do(func() error {
		snap, err := link.Read(p.nlOwn)
		if err != nil {
			return err
		}
		mesh, err := NewMesh(p.nlOwn, "ns/lab", "r1", pod).Ensure(snap, snap.ByName(UnderlayName))
		if err != nil {
			return err
		}
		peers := NewPeers(p.nlOwn, "ns/lab", "r1", pod, slog.New(slog.DiscardHandler))
		defer peers.Close()
		if err := peers.Watch(mesh); err != nil {
			return err
		}
		peers.SetDirectory(map[netip.Addr]string{mgmt: "r2"})
		peers.SetSessions(&sessions{map[string]netip.Addr{"r2": other}})
		peers.ask(mgmt)
		if got := fmt.Sprint(peers.Entries()); got != "[{r2 10.1.0.6 0s}]" {
			t.Errorf("a peer in use: %s", got)
		}
		peers.active["r2"].asked = time.Now().Add(-2 * fdbAge)
		peers.SetSessions(&sessions{})
		peers.Apply()
		for _, want := range []string{"[{r2 invalid IP 0s}]", "[]"} {
			if err := peers.Expire(); err != nil {
				return err
			}
			if got := fmt.Sprint(peers.Entries()); got != want {
				t.Errorf("a lost peer: %s, want %s", got, want)
			}
			if lost := peers.active["r2"]; lost != nil {
				lost.asked = time.Now().Add(-2 * fdbAge)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
