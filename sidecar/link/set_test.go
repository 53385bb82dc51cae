package link

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// testPod is a sidecar's namespace and a device's, and the Set between them.
type testPod struct {
	*testing.T
	own, dev     *nspace.Namespace
	nlOwn, nlDev *netlink.Handle
	state        string
	set          *Set
}

func newTestPod(t *testing.T) *testPod {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	p := &testPod{T: t, state: filepath.Join(t.TempDir(), "interfaces.json")}
	for _, side := range []struct {
		ns *(*nspace.Namespace)
		nl *(*netlink.Handle)
	}{{&p.own, &p.nlOwn}, {&p.dev, &p.nlDev}} {
		ns, err := nspace.New()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		nl, err := netlink.NewHandleAt(netns.NsHandle(ns.FD()), unix.NETLINK_ROUTE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nl.Close)
		*side.ns, *side.nl = ns, nl
	}
	p.restart()
	return p
}

// restart replaces the Set, as a new process of the sidecar does.
func (p *testPod) restart() {
	p.set = NewSet(p.nlOwn, p.own, p.nlDev, Options{StateFile: p.state, Owner: "ns/pod", Device: p.dev})
}

// apply applies a document and returns the states by interface.
func (p *testPod) apply(bridges []contract.Bridge, want ...contract.Interface) map[string]State {
	p.Helper()
	var states []State
	err := p.own.Do(func() (err error) {
		states, err = p.set.Apply(p.Context(), want, bridges)
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	if len(states) != len(want) {
		p.Fatalf("%d states of %d interfaces", len(states), len(want))
	}
	all := map[string]State{}
	for _, s := range states {
		all[s.Key.Name] = s
	}
	return all
}

// good is apply without a failure.
func (p *testPod) good(bridges []contract.Bridge, want ...contract.Interface) map[string]State {
	p.Helper()
	states := p.apply(bridges, want...)
	for _, s := range states {
		if s.Err != nil {
			p.Fatalf("%s: %v", s.Key.Name, s.Err)
		}
	}
	return states
}

// names are the interfaces of a namespace but lo, sorted.
func (p *testPod) names(nl *netlink.Handle) string {
	p.Helper()
	list, err := nl.LinkList()
	if err != nil {
		p.Fatal(err)
	}
	var names []string
	for _, l := range list {
		if l.Attrs().Name != "lo" {
			names = append(names, l.Attrs().Name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (p *testPod) device(name string) netlink.Link {
	p.Helper()
	l, err := p.nlDev.LinkByName(name)
	if err != nil {
		p.Fatalf("%s: %v", name, err)
	}
	return l
}

func testInterface(name string, n int) contract.Interface {
	return contract.Interface{
		Name: name, Alias: "ethernet-1/" + fmt.Sprint(n), Node: "r1", MAC: fmt.Sprintf("aa:c1:ab:00:00:%02x", n), MTU: 9500,
		IPv4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, 0, byte(n)}), 24),
	}
}

func testWire(name string, n int) contract.Interface {
	i := testInterface(name, n)
	i.Wire = &contract.Wire{ID: contract.WireID(n), PeerPod: "r2", PeerNode: "r2", PeerInterface: name, Datapath: "auto"}
	return i
}

func testDummy(name string, n int) contract.Interface {
	i := testInterface(name, n)
	i.Dummy = true
	return i
}

func TestSetWire(t *testing.T) {
	p := newTestPod(t)
	first := p.good(nil, testWire("eth1", 1))["eth1"]
	if first.Kind != "wire" || first.Name != "eth1" || first.Leg != LegName(1, "") || first.MTU != 9500 || first.MAC != "aa:c1:ab:00:00:01" || first.Elsewhere {
		t.Errorf("%+v", first)
	}
	dev := p.device("eth1").Attrs()
	if dev.Alias != "ethernet-1/1" || dev.Flags&net.FlagUp == 0 {
		t.Errorf("alias %q, flags %s", dev.Alias, dev.Flags)
	}
	addrs, err := p.nlDev.AddrList(p.device("eth1"), netlink.FAMILY_V4)
	if err != nil || len(addrs) != 1 || addrs[0].IPNet.String() != "10.9.0.1/24" {
		t.Errorf("addresses %v, %v", addrs, err)
	}
	// The wire decides when the device sees a carrier.
	if leg, err := p.nlOwn.LinkByName(first.Leg); err != nil || leg.Attrs().Flags&net.FlagUp != 0 || leg.Attrs().Index != first.LegIndex {
		t.Errorf("leg %+v, %v", leg, err)
	}
	again := p.good(nil, testWire("eth1", 1))["eth1"]
	if again.Index != first.Index || again.LegIndex != first.LegIndex {
		t.Errorf("it was recreated: %+v, before %+v", again, first)
	}
}

// Changes of the document reach the device; what the device set itself stays, over a
// restart of the sidecar too.
func TestSetKeepsWhatTheDeviceSet(t *testing.T) {
	p := newTestPod(t)
	i := testWire("eth1", 1)
	before := p.good(nil, i)["eth1"]
	if err := p.nlDev.LinkSetMTU(p.device("eth1"), 2000); err != nil {
		t.Fatal(err)
	}
	p.restart()
	if s := p.good(nil, i)["eth1"]; s.MTU != 2000 || s.Index != before.Index {
		t.Errorf("after a restart: %+v", s)
	}
	i.IPv4 = netip.MustParsePrefix("10.9.1.1/24")
	if s := p.good(nil, i)["eth1"]; s.MTU != 2000 || s.Index != before.Index {
		t.Errorf("after a change of the address: %+v", s)
	}
	addrs, err := p.nlDev.AddrList(p.device("eth1"), netlink.FAMILY_V4)
	if err != nil || len(addrs) != 1 || addrs[0].IPNet.String() != "10.9.1.1/24" {
		t.Errorf("addresses %v, %v", addrs, err)
	}
	i.MTU = 1500
	if s := p.good(nil, i)["eth1"]; s.MTU != 1500 {
		t.Errorf("after a change of the MTU: %+v", s)
	}
}

func TestSetRemoves(t *testing.T) {
	p := newTestPod(t)
	p.good(nil, testWire("eth1", 1), testWire("eth2", 2), testDummy("eth3", 3))
	p.good(nil, testWire("eth2", 2))
	if names := p.names(p.nlDev); names != "eth2" {
		t.Errorf("the device has %s", names)
	}
	if names := p.names(p.nlOwn); names != LegName(2, "") {
		t.Errorf("the sidecar has %s", names)
	}
	p.restart()
	p.good(nil)
	if names := p.names(p.nlDev) + p.names(p.nlOwn); names != "" {
		t.Errorf("left: %s", names)
	}
}

// A foreign interface of a wanted name is not touched, and the others are made.
func TestSetContinuesAfterAFailure(t *testing.T) {
	p := newTestPod(t)
	if err := p.nlDev.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth1"}, PeerName: "foreign"}); err != nil {
		t.Fatal(err)
	}
	foreign := p.device("eth1").Attrs().Index
	states := p.apply(nil, testWire("eth1", 1), testWire("eth2", 2), testInterface("eth3", 3))
	if states["eth1"].Err == nil || states["eth3"].Err == nil || states["eth2"].Err != nil {
		t.Errorf("%+v", states)
	}
	if p.device("eth1").Attrs().Index != foreign {
		t.Error("the foreign eth1 was replaced")
	}
	p.device("eth2")
}

// A link within the Pod is a veth pair; with an impairment it has two legs, between
// which the wire passes frames.
func TestSetLocal(t *testing.T) {
	p := newTestPod(t)
	ends := func(impairment *contract.Impairment) []contract.Interface {
		a, b := testInterface("eth1", 1), testInterface("eth2", 2)
		b.Node = "r2"
		a.Local = &contract.Local{ID: 7, PeerNode: "r2", PeerInterface: "eth2", Impairment: impairment}
		b.Local = &contract.Local{ID: 7, PeerNode: "r1", PeerInterface: "eth1"}
		return []contract.Interface{a, b}
	}
	p.good(nil, ends(nil)...)
	a, b := p.device("eth1").Attrs(), p.device("eth2").Attrs()
	if a.ParentIndex != b.Index || b.ParentIndex != a.Index || p.names(p.nlOwn) != "" {
		t.Errorf("eth1 leads to %d, eth2 is %d; the sidecar has %s", a.ParentIndex, b.Index, p.names(p.nlOwn))
	}
	states := p.good(nil, ends(&contract.Impairment{DelayMS: 5})...)
	if states["eth1"].Leg == "" || states["eth2"].Leg == "" || states["eth1"].Leg == states["eth2"].Leg {
		t.Errorf("%+v", states)
	}
	p.good(nil, ends(nil)...)
	if names := p.names(p.nlOwn); names != "" {
		t.Errorf("without the impairment the sidecar has %s", names)
	}
}

func TestSetBridge(t *testing.T) {
	p := newTestPod(t)
	port := testWire("eth1", 1)
	port.Node, port.Bridge, port.IPv4 = "br1", "br1", netip.Prefix{}
	p.good([]contract.Bridge{{Name: "br1", GroupForwardMask: 1 << 14}}, port)
	br, err := p.nlOwn.LinkByName("br1")
	if err != nil {
		t.Fatal(err)
	}
	eth1, err := p.nlOwn.LinkByName("eth1")
	if err != nil {
		t.Fatal(err)
	}
	if br.Type() != "bridge" || br.Attrs().Flags&net.FlagUp == 0 || eth1.Attrs().MasterIndex != br.Attrs().Index {
		t.Errorf("%s, flags %s; eth1's master is %d", br.Type(), br.Attrs().Flags, eth1.Attrs().MasterIndex)
	}
	p.good(nil)
	if names := p.names(p.nlOwn); names != "" {
		t.Errorf("left: %s", names)
	}
}

// A device may move its interface to a namespace of its own. It is reported, not
// recreated, and removed from there when it is no longer wanted.
func TestSetElsewhere(t *testing.T) {
	p := newTestPod(t)
	before := p.good(nil, testWire("eth1", 1))["eth1"]
	vrf, err := nspace.New()
	if err != nil {
		t.Fatal(err)
	}
	defer vrf.Close()
	if err := p.nlDev.LinkSetNsFd(p.device("eth1"), vrf.FD()); err != nil {
		t.Fatal(err)
	}
	if s := p.good(nil, testWire("eth1", 1))["eth1"]; !s.Elsewhere || s.LegIndex != before.LegIndex {
		t.Errorf("%+v", s)
	}
	p.good(nil)
	nl, err := netlink.NewHandleAt(netns.NsHandle(vrf.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer nl.Close()
	if names := p.names(nl); names != "" {
		t.Errorf("left: %s", names)
	}
}
