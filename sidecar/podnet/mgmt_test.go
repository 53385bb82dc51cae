package podnet

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// mgmtDoc is a node with the n-th management address.
func mgmtDoc(n int) contract.Links {
	last := byte(n)
	return contract.Links{
		Hostname: "PE_" + string(rune('0'+n%10)),
		Mgmt: &contract.Mgmt{
			Interface: "eth0", MAC: fmt.Sprintf("02:00:00:00:00:%02x", n), MTU: 1500,
			IPv4:      netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 20, 20, last}), 24),
			IPv6:      netip.PrefixFrom(v6(last), 64),
			GatewayV4: netip.MustParseAddr("172.20.20.1"), GatewayV6: netip.MustParseAddr("3fff:172:20:20::1"),
			ExternalAccess: true,
		},
	}
}

func v6(last byte) netip.Addr {
	a := netip.MustParseAddr("3fff:172:20:20::").As16()
	a[15] = last
	return netip.AddrFrom16(a)
}

// directory gives every Pod the lab's directory and all addresses.
func directory(pods ...*pod) {
	dir := contract.Directory{Version: contract.DirectoryVersion, Lab: "demo"}
	known := contract.Addresses{Version: contract.AddressesVersion, Pods: map[string][]netip.Addr{}}
	for _, p := range pods {
		n := contract.DirectoryNode{Name: p.name, Pod: p.name, Names: []string{p.name}}
		if m := p.doc.Mgmt; m != nil {
			n.IPv4, n.IPv6, n.MAC = m.IPv4.Addr(), m.IPv6.Addr(), m.MAC
		}
		dir.Nodes = append(dir.Nodes, n)
		known.Pods[p.name] = p.addrs()
	}
	for _, p := range pods {
		p.writeJSON("directory/directory.json", dir)
		p.writeJSON("directory/addresses.json", known)
	}
}

// twoPods are two running nodes that know each other.
func twoPods(t *testing.T, change func(*contract.Links)) (c *cluster, a, b *pod) {
	t.Helper()
	c = newCluster(t)
	docs := []contract.Links{mgmtDoc(11), mgmtDoc(12)}
	for i := range docs {
		change(&docs[i])
	}
	a, b = c.newPod("r1", docs[0]), c.newPod("r2", docs[1])
	directory(a, b)
	for _, p := range c.pods {
		p.start()
	}
	for _, p := range c.pods {
		p.waitStarted()
	}
	return c, a, b
}

func unchanged(*contract.Links) {}

func TestManagement(t *testing.T) {
	c, a, b := twoPods(t, unchanged)
	for _, to := range []string{"172.20.20.1", "3fff:172:20:20::1", "172.20.20.12", "3fff:172:20:20::c", gateway4, gateway6} {
		if err := ping(a.ns, to, sure); err != nil {
			t.Errorf("ping from r1: %v", err)
		}
	}
	stop, err := echoServer(b.ns, ":22")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, way := range []struct{ ns, to, from string }{
		{c.name, b.ip4 + ":22", "172.20.20.1"},
		{c.name, "[" + b.ip6 + "]:22", "3fff:172:20:20::1"},
		{a.ns, "172.20.20.12:22", "172.20.20.11"},
		{a.ns, "[3fff:172:20:20::c]:22", "3fff:172:20:20::b"},
	} {
		eventually(t, "connect to "+way.to, func() error { return wantFrom(way.ns, way.to, way.from) })
	}
}

// A device does what it likes to its tables: probes and peers still reach the Pod. All
// ports of the Pod address are the device's, declared or not, but for the sidecar's.
func TestDeviceFlushesRoutes(t *testing.T) {
	c, a, b := twoPods(t, unchanged)
	a.in("ip route flush table main")
	a.in("ip -6 route flush table main")
	a.waitStarted()
	if err := ping(c.name, a.ip6, sure); err != nil {
		t.Error(err)
	}
	stop, err := echoServer(a.ns, ":8080")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	a.in("ip route add 172.20.20.0/24 dev eth0")
	eventually(t, "an undeclared port", func() error { return wantFrom(c.name, a.ip4+":8080", "172.20.20.1") })
	// What is missing in the sidecar's namespace is put right.
	b.inOwn("ip route flush table 14801")
	b.inOwn("ip rule flush")
	b.inOwn("ip rule add pref 32766 table main")
	b.inOwn("nft flush ruleset")
	b.inOwn("ip link set lo mtu 65000") // a notice
	for _, to := range []string{"172.20.20.1", gateway4} {
		if err := ping(b.ns, to, sure); err != nil {
			t.Errorf("rules and routes are not back: %v", err)
		}
	}
}

// A device has its own idea of forwarding and of reverse paths.
func TestDeviceSettings(t *testing.T) {
	c, a, b := twoPods(t, unchanged)
	for path, value := range map[string]string{"ipv4/ip_forward": "0", "ipv6/conf/all/forwarding": "0", "ipv4/conf/all/rp_filter": "1"} {
		if err := withNS(a.ns, func() error { return os.WriteFile("/proc/sys/net/"+path, []byte(value), 0) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []string{"172.20.20.12", "3fff:172:20:20::c", gateway4, gateway6} {
		if err := ping(a.ns, to, sure); err != nil {
			t.Error(err)
		}
	}
	stop, err := echoServer(a.ns, ":22")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, way := range []struct{ ns, to, from string }{
		{c.name, a.ip4 + ":22", "172.20.20.1"},
		{b.ns, "172.20.20.11:22", "172.20.20.12"},
		{b.ns, "[3fff:172:20:20::b]:22", "3fff:172:20:20::c"},
	} {
		eventually(t, "connect to "+way.to, func() error { return wantFrom(way.ns, way.to, way.from) })
	}
	if got := strings.TrimSpace(a.in("cat /proc/sys/net/ipv6/conf/eth0/forwarding")); got != "0" {
		t.Errorf("the device's own interface forwards: %s", got)
	}
}

// SR Linux, for one, moves eth0 to a namespace of its own.
func TestEth0Moved(t *testing.T) {
	c, a, b := twoPods(t, unchanged)
	dev := a.ns + "d"
	c.ip("netns", "add", dev)
	defer run("ip", "netns", "del", dev)
	if err := withNS(a.ns, func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("1"), 0) }); err != nil {
		t.Fatal(err)
	}
	a.in("ip link set eth0 netns " + dev)
	for _, line := range []string{
		"ip link set lo up", "ip link set eth0 name mgmt0", "ip link set mgmt0 up", "ip addr add 172.20.20.11/24 dev mgmt0",
		"ip addr add 3fff:172:20:20::b/64 dev mgmt0 nodad", "ip route add default via 172.20.20.1", "ip -6 route add default via 3fff:172:20:20::1",
	} {
		inNS(t, dev, line)
	}
	for _, to := range []string{"172.20.20.1", "3fff:172:20:20::1", "172.20.20.12", "3fff:172:20:20::c", gateway4, gateway6} {
		if err := ping(dev, to, sure); err != nil {
			t.Errorf("ping from the device: %v", err)
		}
	}
	stop, err := echoServer(dev, ":22")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, way := range []struct{ ns, to, from string }{
		{c.name, a.ip4 + ":22", "172.20.20.1"},
		{c.name, "[" + a.ip6 + "]:22", "3fff:172:20:20::1"},
		{b.ns, "172.20.20.11:22", "172.20.20.12"},
		{b.ns, "[3fff:172:20:20::b]:22", "3fff:172:20:20::c"},
	} {
		eventually(t, "connect to "+way.to, func() error { return wantFrom(way.ns, way.to, way.from) })
	}
	// Nothing makes a second eth0.
	a.in("ip link set lo mtu 65000")
	time.Sleep(300 * time.Millisecond) // time in which one could be made
	if out, err := run("ip", "-n", a.ns, "link", "show", "eth0"); err == nil {
		t.Errorf("there is an eth0 again: %s", out)
	}
	// The device's namespace ends, and eth0 with it: it is made again.
	c.ip("netns", "del", dev)
	eventually(t, "eth0 is back", func() error { return ping(b.ns, "172.20.20.11", time.Second) })
}

// Others rename it where it is.
func TestEth0Renamed(t *testing.T) {
	c, a, b := twoPods(t, unchanged)
	a.in("ip link set eth0 down")
	a.in("ip link set eth0 name ma1")
	a.in("ip link set ma1 up")
	a.in("ip route add default via 172.20.20.1")
	stop, err := echoServer(a.ns, ":22")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	eventually(t, "from outside", func() error { return wantFrom(c.name, a.ip4+":22", "172.20.20.1") })
	eventually(t, "from a peer", func() error { return wantFrom(b.ns, "172.20.20.11:22", "172.20.20.12") })
	if err := ping(a.ns, gateway4, sure); err != nil {
		t.Error(err)
	}
}

// Killed after the cluster interface has moved, which takes all away that it had.
func TestKilledInMove(t *testing.T) {
	c, a, _ := twoPods(t, unchanged)
	a.own()
	a.kill()
	a.inOwn("ip addr flush dev c9s0")
	a.inOwn("ip link set c9s0 down")
	a.start()
	a.waitStarted()
	for _, to := range []string{a.ip4, a.ip6} {
		if err := ping(c.name, to, sure); err != nil {
			t.Error(err)
		}
	}
	for _, to := range []string{"172.20.20.12", gateway4, gateway6} {
		if err := ping(a.ns, to, sure); err != nil {
			t.Error(err)
		}
	}
}

// Another address for the node is a change like any other.
func TestMgmtAddressChanges(t *testing.T) {
	_, a, b := twoPods(t, unchanged)
	a.doc.Mgmt.IPv4 = netip.MustParsePrefix("172.20.20.77/24")
	a.apply()
	directory(a, b)
	if err := ping(b.ns, "172.20.20.77", sure); err != nil {
		t.Error(err)
	}
	eventually(t, "the old address goes", func() error {
		if out := a.in("ip -4 addr show eth0"); strings.Contains(out, "172.20.20.11/") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}

func TestNoExternalAccess(t *testing.T) {
	c, a, b := twoPods(t, func(d *contract.Links) { d.Mgmt.ExternalAccess = false })
	for _, to := range []string{"172.20.20.12", "3fff:172:20:20::c"} {
		if err := ping(a.ns, to, sure); err != nil {
			t.Errorf("a peer: %v", err)
		}
	}
	for _, to := range []string{gateway4, gateway6, b.ip4} {
		if ping(a.ns, to, 500*time.Millisecond) == nil {
			t.Errorf("%s, outside the lab: %v", to, errReached)
		}
	}
	stop, err := echoServer(b.ns, ":22")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	eventually(t, "who comes in is answered", func() error { return wantFrom(c.name, b.ip4+":22", "172.20.20.1") })
}

// Only names of the lab are answered for; an address that nobody has is silent.
func TestUnknownAddressIsSilent(t *testing.T) {
	_, a, _ := twoPods(t, unchanged)
	for _, to := range []string{"172.20.20.99", "3fff:172:20:20::63"} {
		if ping(a.ns, to, 500*time.Millisecond) == nil {
			t.Errorf("%s: %v", to, errReached)
		}
		out, _ := run("ip", "-n", a.ns, "neigh", "show", to, "dev", "eth0")
		if strings.Contains(out, "lladdr") {
			t.Errorf("somebody answers for %s: %s", to, out)
		}
	}
}

// Where the route out takes less than the interface, as where the cluster encrypts, the
// mesh and what is clamped go by the route.
func TestRouteMTU(t *testing.T) {
	c := newCluster(t)
	p := c.newPod("r1", mgmtDoc(11))
	p.in("ip route replace default via " + gateway4 + " mtu 1380")
	p.start()
	p.waitStarted()
	if out := p.inOwn("ip link show c9sm"); !strings.Contains(out, "mtu 1330 ") {
		t.Errorf("the mesh has %s", out)
	}
	if out := p.inOwn("nft list table inet c9s"); !strings.Contains(out, "1340") {
		t.Errorf("MSS is not clamped by the route's MTU: %s", out)
	}
}

// A CNI plugin whose gateway answers no ARP gives the Pod a permanent neighbour, which an
// interface loses that moves or goes down.
func TestPermanentNeighbour(t *testing.T) {
	c := newCluster(t)
	p := c.newPod("r1", mgmtDoc(11))
	want := []string{"169.254.1.1 lladdr 02:00:00:00:aa:01 PERMANENT", "fe80::1 lladdr 02:00:00:00:aa:02 PERMANENT"}
	for _, line := range want {
		f := strings.Fields(line)
		p.in("ip neigh add " + f[0] + " lladdr " + f[2] + " nud permanent dev eth0")
	}
	p.start()
	p.waitStarted()
	there := func() error {
		out := p.inOwn("ip neigh show dev c9s0") + p.inOwn("ip -6 neigh show dev c9s0")
		for _, line := range want {
			if !strings.Contains(out, line) {
				return fmt.Errorf("no %q in %s", line, out)
			}
		}
		return nil
	}
	eventually(t, "the neighbours are there", there)
	p.inOwn("ip link set c9s0 down")
	eventually(t, "the neighbours are there again", there)
}

// A worker that was booted again, or a pause container that ended, gives the same Pod a
// new sandbox beside the old files: another namespace, and another address.
func TestNewSandbox(t *testing.T) {
	c := newCluster(t)
	for n, name := range []string{"r1", "r2"} {
		doc := mgmtDoc(11 + n)
		doc.Sysctls = map[string]string{"net.ipv4.conf.all.log_martians": "1"}
		doc.Interfaces = append(doc.Interfaces, wired(iface(name, "eth1", n+1), 5, []string{"r2", "r1"}[n]))
		c.newPod(name, doc)
	}
	c.startAll()
	a, b := c.pods[0], c.pods[1]
	b.in("ip addr show dev eth1 to 10.9.0.2")
	before, old := b.in("ip -o addr show dev eth1"), b.ip4
	if !strings.Contains(before, "10.9.0.2/16") {
		t.Fatalf("eth1 has %s", before)
	}
	for range 2 { // the state is the new sandbox's own then
		b.unplug()
		b.plug()
		b.start()
		b.waitStarted()
		directory(a, b)
		if out := b.in("ip -o addr show dev eth1"); !strings.Contains(out, "10.9.0.2/16") {
			t.Errorf("eth1 of the new sandbox has %s", out)
		}
		if out := b.inOwn("ip -o addr show dev c9s0"); !strings.Contains(out, b.ip4+"/") || strings.Contains(out, old+"/") {
			t.Errorf("c9s0 of the new sandbox has %s, and the old address was %s", out, old)
		}
		if out := strings.TrimSpace(b.in("cat /proc/sys/net/ipv4/conf/all/log_martians")); out != "1" {
			t.Errorf("log_martians is %s in the new sandbox", out)
		}
		if err := pingFrom(a.ns, "eth1", "10.9.0.2", sure); err != nil {
			t.Error(err)
		}
		if err := ping(a.ns, "172.20.20.12", sure); err != nil {
			t.Error(err)
		}
	}
	boots := func() int {
		s, err := b.status()
		if err != nil {
			t.Fatal(err)
		}
		return s.Restarts
	}
	if n := boots(); n != 0 {
		t.Errorf("%d restarts in the new sandbox", n)
	}
	b.kill()
	b.start()
	b.waitStarted()
	if n := boots(); n != 1 {
		t.Errorf("%d restarts after one in the same sandbox", n)
	}
}

// A Pod that comes back elsewhere is found again.
func TestPeerMoves(t *testing.T) {
	c := newCluster(t)
	for n, name := range []string{"r1", "r2"} {
		c.newPod(name, mgmtDoc(11+n)).write("key/key", "a key of the whole lab, thirty-two")
	}
	c.startAll()
	a, b := c.pods[0], c.pods[1]
	if err := ping(a.ns, "172.20.20.12", sure); err != nil {
		t.Fatal(err)
	}
	b.unplug()
	b.forgetState()
	b.plug()
	b.start()
	b.waitStarted()
	// The directory does not know yet: b speaks first, and proves with the lab's key who
	// it is.
	if err := ping(b.ns, "172.20.20.11", sure); err != nil {
		t.Errorf("the moved Pod speaks: %v", err)
	}
	if err := ping(a.ns, "172.20.20.12", sure); err != nil {
		t.Errorf("and is answered: %v", err)
	}
	directory(a, b)
	if err := ping(a.ns, "3fff:172:20:20::c", sure); err != nil {
		t.Errorf("the directory knows: %v", err)
	}
}

// meshFault is what keeps a Pod from reaching another one's management address.
func meshFault(from, to *pod) error {
	for _, addr := range []netip.Addr{to.doc.Mgmt.IPv4.Addr(), to.doc.Mgmt.IPv6.Addr()} {
		if err := ping(from.ns, addr.String(), time.Second); err != nil {
			return fmt.Errorf("%s to %s: %w", from.name, to.name, err)
		}
	}
	return nil
}

// Half of a lab's Pods come back elsewhere, again and again, all at once: each Pod
// reaches each other one soon, by both families, and no entry of the mesh is stale.
func TestMeshAfterMoves(t *testing.T) {
	const nodes = 10
	rounds := 20
	if testing.Short() {
		rounds = 2
	}
	c := newCluster(t)
	for n := range nodes {
		c.newPod(fmt.Sprintf("n%d", n), mgmtDoc(11+n)).write("key/key", "a key of the whole lab, thirty-two")
	}
	c.startAll()
	longest := time.Duration(0)
	for round := range rounds {
		for n, p := range c.pods {
			if (n+round)%2 == 0 {
				continue
			}
			p.unplug()
			p.forgetState()
			p.plug()
			p.start()
		}
		// The controller tells of the new addresses; here it does so when all have started.
		for _, p := range c.pods {
			p.waitStarted()
		}
		directory(c.pods...)
		var group sync.WaitGroup
		began := time.Now()
		took := make([]time.Duration, nodes)
		for n, from := range c.pods {
			group.Go(func() {
				for _, to := range c.pods {
					if to == from {
						continue
					}
					for end := time.Now().Add(patience); ; {
						err := meshFault(from, to)
						if err == nil {
							break
						}
						if time.Now().After(end) {
							t.Errorf("round %d: %v", round, err)
							return
						}
					}
				}
				took[n] = time.Since(began)
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
		longest = max(longest, slices.Max(took))
	}
	t.Logf("all pairs of %d nodes reached each other %v after half of them had moved, at most, in %d rounds", nodes, longest.Round(10*time.Millisecond), rounds)
	s, err := c.pods[0].status()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Mgmt.Peers {
		if want := c.podNamed(p.Pod).ip4; !p.Up || p.Address.String() != want {
			t.Errorf("the status says of %s: %+v, and it is at %s", p.Pod, p, want)
		}
	}
	if len(s.Mgmt.Peers) != nodes-1 {
		t.Errorf("the status has %d peers, want %d", len(s.Mgmt.Peers), nodes-1)
	}
}

// A peer that is gone is no longer pointed to, and the device hears that nobody is there.
func TestMeshPeerLost(t *testing.T) {
	_, a, b := twoPods(t, unchanged)
	if err := meshFault(a, b); err != nil {
		eventually(t, "the mesh works", func() error { return meshFault(a, b) })
	}
	b.unplug()
	eventually(t, "the lost peer has no entry", func() error {
		s, err := a.status()
		if err == nil && (len(s.Mgmt.Peers) != 1 || s.Mgmt.Peers[0].Up) {
			err = fmt.Errorf("%+v", s.Mgmt.Peers)
		}
		if out := a.inOwn("bridge fdb show dev c9sm") + a.inOwn("ip neigh show dev c9sm nud permanent"); strings.Contains(out, "10.244") || strings.Contains(out, "172.20.20.12") {
			err = errors.Join(err, errors.New(out))
		}
		return err
	})
}
