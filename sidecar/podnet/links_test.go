package podnet

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// iface is an interface with an address in 10.9.0.0/16, by which the tests ping.
func iface(node, name string, n int) contract.Interface {
	return contract.Interface{
		Name: name, Node: node, MAC: fmt.Sprintf("aa:c1:ab:00:%02x:%02x", n>>8, n&0xff), MTU: 9500,
		IPv4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(n >> 8), byte(n)}), 16),
	}
}

func wired(i contract.Interface, id int, pod string) contract.Interface {
	i.Wire = &contract.Wire{ID: contract.WireID(id), PeerPod: pod, PeerNode: pod, PeerInterface: "eth1", Datapath: "auto"}
	return i
}

// startAll starts the Pods and waits for their startup probes.
func (c *cluster) startAll() {
	c.t.Helper()
	directory(c.pods...)
	for _, p := range c.pods {
		p.start()
	}
	for _, p := range c.pods {
		p.waitStarted()
	}
}

func (p *pod) index(name string) int {
	p.t.Helper()
	out := p.in("ip -o link show " + name)
	n, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(out, ":", 2)[0]))
	if err != nil {
		p.t.Fatalf("index of %s: %q", name, out)
	}
	return n
}

func (p *pod) has(name string) error {
	if out, err := run("ip", "-n", p.ns, "link", "show", name); err != nil {
		return fmt.Errorf("%s", out)
	}
	return nil
}

func (p *pod) hasNot(name string) error {
	if p.has(name) == nil {
		return fmt.Errorf("%s is there", name)
	}
	return nil
}

// carrier reports whether the interface has its cable plugged in.
func (p *pod) carrier(name string) error {
	out, err := run("ip", "-n", p.ns, "-o", "link", "show", name)
	if err != nil || !strings.Contains(out, "LOWER_UP") {
		return fmt.Errorf("%v %s", err, out)
	}
	return nil
}

func (p *pod) ready() error {
	code, body, err := p.get(api.PathReady)
	if err == nil && code != 200 {
		err = fmt.Errorf("%d %s", code, body)
	}
	return err
}

// TestEncryptedWithoutKey: what is to be encrypted never runs in the clear.
func TestEncryptedWithoutKey(t *testing.T) {
	c := newCluster(t)
	doc := contract.Links{Encrypt: true, Interfaces: []contract.Interface{wired(iface("r1", "eth1", 1), 5, "r2")}}
	p := c.newPod("r1", doc)
	p.start()
	eventually(t, "it says what is missing", func() error {
		if err := p.ready(); err == nil || !strings.Contains(err.Error(), "apply the Secret c9s-wire-key") {
			return fmt.Errorf("ready says %v", err)
		}
		return nil
	})
	if s, err := p.status(); err != nil || s.Fabric.Mode != "" {
		t.Errorf("the wires run: %+v %v", s.Fabric, err)
	}
	p.write("key/key", "a key of the whole lab, thirty-two")
	eventually(t, "the wires start with the key", func() error {
		s, err := p.status()
		if err == nil && s.Fabric.Mode != "encrypted" {
			err = fmt.Errorf("%+v", s.Fabric)
		}
		return err
	})
}

func TestWire(t *testing.T) {
	c := newCluster(t)
	da, db := contract.Links{}, contract.Links{}
	da.Interfaces = []contract.Interface{wired(iface("r1", "eth1", 1), 5, "r2")}
	db.Interfaces = []contract.Interface{wired(iface("r2", "eth1", 2), 5, "r1")}
	da.Interfaces[0].Alias = "ethernet-1/1"
	a, b := c.newPod("r1", da), c.newPod("r2", db)
	c.startAll()
	for _, p := range c.pods {
		eventually(t, p.name+" is ready", p.ready)
	}
	if err := pingFrom(a.ns, "eth1", "10.9.0.2", sure); err != nil {
		t.Error(err)
	}
	out := a.in("ip -d link show eth1")
	for _, want := range []string{"alias ethernet-1/1", "altname ethernet-1-1", "altname clab-o-", "mtu 9500", "aa:c1:ab:00:00:01"} {
		if !strings.Contains(out, want) {
			t.Errorf("eth1 has no %q: %s", want, out)
		}
	}
	// The lab's key comes later, one Pod after the other.
	for _, p := range c.pods {
		p.write("key/key", "a key of the whole lab, thirty-two")
		time.Sleep(100 * time.Millisecond) // meanwhile one has the key and the other has not
	}
	for _, p := range c.pods {
		p.waitMode("authenticated")
	}
	// The lab is told to encrypt, and the wires come up again by themselves.
	for _, encrypt := range []bool{true, false} {
		for _, p := range c.pods {
			p.doc.Encrypt = encrypt
			p.apply()
		}
		want := map[bool]string{true: "encrypted", false: "authenticated"}[encrypt]
		for _, p := range c.pods {
			p.waitMode(want)
		}
		if err := pingFrom(a.ns, "eth1", "10.9.0.2", sure); err != nil {
			t.Errorf("%s: %v", want, err)
		}
	}
	// The far end is shut down: the cable looks unplugged, and that is no fault.
	b.in("ip link set eth1 down")
	eventually(t, "carrier goes", func() error {
		if a.carrier("eth1") == nil {
			return errReached
		}
		return nil
	})
	eventually(t, "a link that a device has shut down is ready", a.ready)
	b.in("ip link set eth1 up")
	eventually(t, "carrier comes", func() error { return a.carrier("eth1") })
	// The far Pod is gone: that is one.
	b.unplug()
	eventually(t, "not ready", func() error {
		if a.ready() == nil {
			return errReached
		}
		return nil
	})
}

// The kernel's VXLAN takes the Pod's own routes too, whatever the device has.
func TestWireByVXLAN(t *testing.T) {
	c := newCluster(t)
	for n, name := range []string{"r1", "r2"} {
		doc := mgmtDoc(11 + n)
		i := wired(iface(name, "eth1", n+1), 5, []string{"r2", "r1"}[n])
		i.Wire.Datapath, i.MTU = "vxlan", 1400
		doc.Interfaces = []contract.Interface{i}
		c.newPod(name, doc)
	}
	c.startAll()
	a, b := c.pods[0], c.pods[1]
	a.in("ip route flush table main")
	eventually(t, "vxlan", func() error {
		s, err := a.status()
		if err == nil && (len(s.Fabric.Wires) != 1 || s.Fabric.Wires[0].Datapath != "vxlan") {
			err = fmt.Errorf("%+v", s.Fabric.Wires)
		}
		return err
	})
	if err := carries(a.ns, "eth1", b.ns, "eth1", frame("vxlan"), sure); err != nil {
		t.Error(err)
	}
	if out := a.inOwn("cat /proc/net/nf_conntrack"); strings.Contains(out, "dport=14803") {
		t.Errorf("the tunnel is tracked, or takes eth0: %s", out)
	}
}

// Every kind of link in one Pod, in the order of the file.
func TestLinkKinds(t *testing.T) {
	c := newCluster(t)
	c.in("ip link add up0 type veth peer name up1")
	c.in("ip link set up0 up")
	c.in("ip link set up1 up")
	delay := &contract.Impairment{DelayMS: 1}
	local := func(i contract.Interface, id int, peer string, imp *contract.Impairment) contract.Interface {
		i.Local = &contract.Local{ID: contract.WireID(id), PeerNode: "r1", PeerInterface: peer, Impairment: imp}
		return i
	}
	with := func(i contract.Interface, set func(*contract.Interface)) contract.Interface { set(&i); return i }
	doc := mgmtDoc(11)
	iface := func(node, name string, n int) contract.Interface {
		i := iface(node, name, n)
		i.IPv4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 9, byte(n), 1}), 24)
		return i
	}
	doc.Interfaces = []contract.Interface{
		local(iface("r1", "eth1", 1), 1, "eth2", nil),
		local(iface("r1", "eth2", 2), 1, "eth1", nil),
		local(iface("r1", "eth3", 3), 2, "eth4", delay),
		local(iface("r1", "eth4", 4), 2, "eth3", nil),
		with(iface("r1", "eth5", 5), func(i *contract.Interface) { i.Host = &contract.Host{Interface: "host5"} }),
		with(iface("r1", "eth6", 6), func(i *contract.Interface) { i.Macvlan, i.MTU = &contract.Macvlan{Parent: "up0", Mode: "bridge"}, 0 }),
		with(iface("r1", "eth7", 7), func(i *contract.Interface) {
			i.VXLAN, i.MTU = &contract.VXLAN{Remote: gateway4, VNI: 77, DstPort: 14789}, 0
		}),
		with(iface("r1", "eth8", 8), func(i *contract.Interface) {
			i.VXLAN, i.Stitch = &contract.VXLAN{Remote: gateway4, VNI: 88, DstPort: 14789}, true
		}),
		with(iface("r1", "eth9", 9), func(i *contract.Interface) { i.MgmtNet = &contract.MgmtNet{HostInterface: "m9"} }),
		with(iface("r1", "eth10", 10), func(i *contract.Interface) { i.Dummy = true }),
		with(iface("r1", "a name with/slash", 11), func(i *contract.Interface) { i.Dummy = true }),
	}
	p := c.newPod("r1", doc)
	c.startAll()
	eventually(t, "ready", p.ready)
	last := 0
	for _, i := range doc.Interfaces {
		name := strings.ReplaceAll(strings.ReplaceAll(i.Name, "/", "-"), " ", "-")
		n := p.index(name)
		if n <= last {
			t.Errorf("%s has index %d, and the one before it %d", name, n, last)
		}
		last = n
		eventually(t, "carrier of "+name, func() error { return p.carrier(name) })
	}
	// The worker's ends of host, macvlan and the two tunnels.
	c.in("ip addr add 10.9.5.2/24 dev host5")
	c.in("ip addr add 10.9.6.2/24 dev up1")
	c.in("ip link add vx7 type vxlan id 77 remote " + p.ip4 + " local " + gateway4 + " dstport 14789 dev br0")
	c.in("ip link add vx8 type vxlan id 88 remote " + p.ip4 + " local " + gateway4 + " dstport 14789 dev br0")
	c.in("ip link set vx7 up")
	c.in("ip link set vx8 up")
	c.in("ip addr add 10.9.7.2/24 dev vx7")
	c.in("ip addr add 10.9.8.2/24 dev vx8")
	for _, w := range []struct{ dev, to string }{
		{"host5", "10.9.5.1"}, {"up1", "10.9.6.1"}, {"vx7", "10.9.7.1"}, {"vx8", "10.9.8.1"},
	} {
		if err := pingFrom(c.name, w.dev, w.to, sure); err != nil {
			t.Errorf("from %s of the worker: %v", w.dev, err)
		}
	}
	// A local link is tried by frames, since the kernel would not send to itself.
	for _, pair := range [][2]string{{"eth1", "eth2"}, {"eth3", "eth4"}, {"eth4", "eth3"}} {
		if err := carries(p.ns, pair[0], p.ns, pair[1], frame(pair[0]), sure); err != nil {
			t.Errorf("from %s to %s: %v", pair[0], pair[1], err)
		}
	}
	// An interface on the management network reaches the gateway there.
	dev := p.ns + "d"
	c.ip("netns", "add", dev)
	defer run("ip", "netns", "del", dev)
	p.in("ip link set eth9 netns " + dev)
	inNS(t, dev, "ip addr add 172.20.20.99/24 dev eth9")
	inNS(t, dev, "ip link set eth9 up")
	for _, to := range []string{"172.20.20.1", "172.20.20.11"} {
		if err := ping(dev, to, sure); err != nil {
			t.Errorf("mgmt-net: %v", err)
		}
	}
	if err := ping(p.ns, gateway4, sure); err != nil {
		t.Errorf("eth0 beside it: %v", err)
	}
	// Nothing of the Pod is left on the worker after it.
	p.remove()
	eventually(t, "the worker is clean", func() error {
		if out := c.in("ip -o link show"); strings.Contains(out, "host5") || strings.Contains(out, "macvlan") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}

// A bridge with eight ends carries what a containerlab bridge does.
func TestBridge(t *testing.T) {
	c := newCluster(t)
	doc := contract.Links{Bridges: []contract.Bridge{{Name: "br1", GroupForwardMask: 0xffff &^ 2}}}
	const ends = 8
	for n := 1; n <= ends; n++ {
		i := wired(iface("br1", fmt.Sprintf("port%d", n), 100+n), n, fmt.Sprintf("n%d", n))
		i.Bridge, i.IPv4 = "br1", netip.Prefix{}
		doc.Interfaces = append(doc.Interfaces, i)
	}
	br := c.newPod("br1", doc)
	for n := 1; n <= ends; n++ {
		c.newPod(fmt.Sprintf("n%d", n), contract.Links{Interfaces: []contract.Interface{wired(iface(fmt.Sprintf("n%d", n), "eth1", n), n, "br1")}})
	}
	c.startAll()
	eventually(t, "ready", br.ready)
	first := c.pods[1]
	for n := 2; n <= ends; n++ {
		if err := pingFrom(first.ns, "eth1", fmt.Sprintf("10.9.0.%d", n), sure); err != nil {
			t.Error(err)
		}
	}
	// What bridge(8) shows of it is asked for by the sidecar's socket, and by nothing else.
	socket := br.config()
	text, err := api.Bridge(t.Context(), socket.state(contract.SocketFile), "br1", "fdb")
	mac := strings.TrimSpace(first.in("cat /sys/class/net/eth1/address"))
	if err != nil || !strings.Contains(text, mac+" dev port1 master br1\n") {
		t.Errorf("the bridge has not learned %s: %s, %v", mac, text, err)
	}
	if text, err := api.Bridge(t.Context(), socket.state(contract.SocketFile), "c9sr0", "fdb"); err == nil {
		t.Errorf("a bridge of the sidecar's own is shown: %s", text)
	}
	if code, body, err := br.get(api.PathBridge + "?node=br1&object=fdb"); err != nil || code != http.StatusNotFound {
		t.Errorf("a stranger gets %d %s, %v", code, body, err)
	}
	for what, dst := range map[string]string{"STP": "0180c2000000", "LACP": "0180c2000002", "LLDP": "0180c200000e"} {
		if err := carries(first.ns, "eth1", c.pods[ends].ns, "eth1", groupFrame(dst), sure); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A changed links.json touches what it names and nothing else.
func TestLiveChanges(t *testing.T) {
	c := newCluster(t)
	ends := func() (a, b []contract.Interface) {
		for n := 1; n <= 3; n++ {
			a = append(a, wired(iface("r1", fmt.Sprintf("eth%d", n), n), n, "r2"))
			b = append(b, wired(iface("r2", fmt.Sprintf("eth%d", n), 10+n), n, "r1"))
		}
		return a, b
	}
	var da, db contract.Links
	da.Interfaces, db.Interfaces = ends()
	a, b := c.newPod("r1", da), c.newPod("r2", db)
	c.startAll()
	for n := 1; !changeLive(t, a, b); n++ {
		if n == 20 {
			t.Fatalf("the Pods lost each other in %d of %d rounds", n, n)
		}
		a.doc.Interfaces, b.doc.Interfaces = ends()
		a.apply()
		b.apply()
		eventually(t, "all is as at first", func() error { return errors.Join(a.has("eth3"), a.hasNot("eth4"), b.has("eth3"), b.hasNot("eth4")) })
	}
	// What the device sets stays.
	a.in("ip link set eth1 mtu 2000")
	a.doc.Interfaces[0].Wire.Impairment = &contract.Impairment{DelayMS: 1}
	a.apply()
	eventually(t, "the impairment is applied", func() error {
		s, err := a.status()
		if err == nil && !slices.ContainsFunc(s.Fabric.Wires, func(w wire.WireStatus) bool { return w.Impairment != nil }) {
			err = fmt.Errorf("%+v", s.Fabric.Wires)
		}
		return err
	})
	if out := a.in("ip link show eth1"); !strings.Contains(out, "mtu 2000") {
		t.Errorf("the device's own MTU was undone: %s", out)
	}
	// A fault ends by itself.
	a.doc.Interfaces[0].Wire.Fault = &contract.Fault{Began: time.Now(), LengthMS: 1500, Impairment: contract.Impairment{Down: true}}
	a.apply()
	carrier := func(want string) {
		t.Helper()
		eventually(t, "carrier "+want+" at both ends", func() error {
			if got := a.in("cat /sys/class/net/eth1/carrier") + b.in("cat /sys/class/net/eth1/carrier"); strings.Join(strings.Fields(got), "") != want+want {
				return fmt.Errorf("%q", got)
			}
			return nil
		})
	}
	carrier("0")
	carrier("1")
	if out := a.in("ip link show eth1"); !strings.Contains(out, "mtu 2000") {
		t.Errorf("the device's own MTU was undone by a fault: %s", out)
	}
	// A torn file changes nothing.
	a.write("links/links.json", `{"version": "c9s.dev/links/v1", "interf`)
	eventually(t, "the status tells of it", func() error {
		s, err := a.status()
		if err == nil && !strings.Contains(s.LastError, "links.json") {
			err = fmt.Errorf("last error %q", s.LastError)
		}
		return err
	})
	time.Sleep(300 * time.Millisecond) // time in which interfaces could be removed
	if err := a.has("eth1"); err != nil {
		t.Errorf("a torn links.json: %v", err)
	}
}

// changeLive changes and swaps all but eth1. It is false where that says nothing of
// eth1's carrier: a Pod that did not run for a while is lost to the other one, and
// then all wires between them are down.
func changeLive(t *testing.T, a, b *pod) bool {
	t.Helper()
	for _, name := range []string{"eth1", "eth2", "eth3"} {
		eventually(t, "carrier of "+name, func() error { return a.carrier(name) })
	}
	fd, err := packetSocket(a.own(), "c9s0")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20); err != nil {
		t.Fatal(err)
	}
	eth1, eth2 := a.index("eth1"), a.index("eth2")
	changes := a.in("cat /sys/class/net/eth1/carrier_changes")

	// Other values for eth2, eth3 goes, eth4 comes.
	begun := time.Now()
	d := &a.doc.Interfaces[1]
	d.MTU, d.MAC, d.IPv4 = 1500, "aa:c1:ab:00:00:99", netip.MustParsePrefix("10.9.0.99/16")
	a.doc.Interfaces[2] = wired(iface("r1", "eth4", 4), 4, "r2")
	a.apply()
	eventually(t, "the change", func() error {
		if err := a.has("eth4"); err != nil {
			return err
		}
		out := a.in("ip addr show eth2")
		if !strings.Contains(out, "mtu 1500") || !strings.Contains(out, "aa:c1:ab:00:00:99") || !strings.Contains(out, "10.9.0.99/16") || strings.Contains(out, "10.9.0.2/16") {
			return fmt.Errorf("%s", out)
		}
		return a.hasNot("eth3")
	})
	t.Logf("applied within %s", time.Since(begun))
	b.doc.Interfaces[2] = wired(iface("r2", "eth4", 14), 4, "r1")
	b.apply()
	eventually(t, "the new wire", func() error { return a.carrier("eth4") })

	// Two cables change places: the same interfaces at other wires.
	a.doc.Interfaces[1].Wire.ID, a.doc.Interfaces[2].Wire.ID = 4, 2
	a.apply()
	eventually(t, "the cables are swapped", func() error {
		return carries(a.ns, "eth2", b.ns, "eth4", frame("swap"), time.Second)
	})
	if a.index("eth1") != eth1 || a.index("eth2") != eth2 {
		t.Error("an interface was recreated")
	}
	now := a.in("cat /sys/class/net/eth1/carrier_changes")
	if now != changes && hellos(fd) > 0 {
		t.Logf("the Pods lost each other: %s changes of eth1's carrier, before %s", now, changes)
		return false
	}
	if now != changes {
		t.Errorf("eth1, which nobody changed, lost its carrier: %s, before %s", now, changes)
	}
	return true
}

// The device renames, moves and deletes its interfaces.
func TestDeviceOwnsItsEnds(t *testing.T) {
	c := newCluster(t)
	doc := contract.Links{Interfaces: []contract.Interface{
		wired(iface("r1", "eth1", 1), 1, "r2"), wired(iface("r1", "eth2", 2), 2, "r2"), wired(iface("r1", "eth3", 3), 3, "r2"),
	}}
	for n, peer := range []string{"eth5", "eth4"} {
		i := iface("r1", fmt.Sprintf("eth%d", 4+n), 4+n)
		i.Local = &contract.Local{ID: 9, PeerNode: "r1", PeerInterface: peer}
		doc.Interfaces = append(doc.Interfaces, i)
	}
	p := c.newPod("r1", doc)
	c.startAll()
	dev := p.ns + "d"
	c.ip("netns", "add", dev)
	defer run("ip", "netns", "del", dev)
	p.in("ip link set eth1 down")
	p.in("ip link set eth1 name e1-1")
	p.in("ip link set e1-1 up")
	p.in("ip link set eth2 netns " + dev)
	p.in("ip link set eth4 netns " + dev)
	p.in("ip link set eth5 netns " + dev)
	old := p.index("eth3")
	p.in("ip link del eth3")
	eventually(t, "eth3 is made again", func() error { return p.has("eth3") })
	if p.index("eth3") == old {
		t.Error("eth3 was not deleted")
	}
	check := func(what string) {
		t.Helper()
		for _, name := range []string{"eth1", "eth2", "eth4", "eth5"} {
			// The altname of the renamed one is not a name that could clash.
			if out := p.in("ip -o link show"); strings.Contains(out, " "+name+"@") {
				t.Errorf("%s: there is a second %s: %s", what, name, out)
			}
		}
	}
	check("running")
	p.kill()
	p.start()
	p.waitStarted()
	check("after a restart")
	if s, err := p.status(); err != nil || s.Restarts != 1 || s.Interfaces[1].State != api.StateElsewhere || s.Interfaces[0].Linux != "e1-1" {
		t.Errorf("status: %+v %v", s.Interfaces, err)
	}
	// The device restarts: its namespace ends, and all that was in it.
	c.ip("netns", "del", dev)
	eventually(t, "all are made again", func() error {
		for _, name := range []string{"eth2", "eth4", "eth5"} {
			if err := p.has(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Killed at any moment, the next one ends up in the same place.
func TestKillLoop(t *testing.T) {
	c := newCluster(t)
	doc := mgmtDoc(11)
	for n := 1; n <= 6; n++ {
		doc.Interfaces = append(doc.Interfaces, wired(iface("r1", fmt.Sprintf("eth%d", n), n), n, "r2"))
	}
	p := c.newPod("r1", doc)
	directory(p)
	// The sidecar alone, from its first moment on; later the supervisor too.
	p.start()
	for n := range 25 {
		pid := p.child()
		time.Sleep(time.Duration(n*7%90) * time.Millisecond)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	p.waitStarted()
	for n := range 15 {
		p.kill()
		p.start()
		time.Sleep(time.Duration(n*7%90) * time.Millisecond)
	}
	p.waitStarted()
	if s, err := p.status(); err != nil || len(s.Interfaces) != 6 || !s.Mgmt.Made {
		t.Errorf("status: %+v %v", s, err)
	}
	for n := 1; n <= 6; n++ {
		if err := p.has(fmt.Sprintf("eth%d", n)); err != nil {
			t.Error(err)
		}
	}
	// lo and eth0; lo, c9s0, the leg of eth0 and the mesh; six pairs.
	for want, out := range map[int]string{2 + 6: p.in("ip -o link show"), 4 + 6: p.inOwn("ip -o link show")} {
		if n := strings.Count(out, "\n"); n != want {
			t.Errorf("%d interfaces, want %d:\n%s", n, want, out)
		}
	}
	if err := ping(p.ns, gateway4, sure); err != nil {
		t.Error(err)
	}
	if err := ping(c.name, p.ip6, sure); err != nil {
		t.Error(err)
	}
}

// Some 250 changes leave no interface, descriptor or goroutine behind.
func TestNoLeak(t *testing.T) {
	c := newCluster(t)
	doc := mgmtDoc(11)
	for n := 1; n <= 8; n++ {
		doc.Interfaces = append(doc.Interfaces, wired(iface("r1", fmt.Sprintf("eth%d", n), n), n, "r2"))
	}
	p := c.newPod("r1", doc)
	c.startAll()
	all := p.doc.Interfaces
	fds := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.child()))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	turn := func(n int) {
		p.doc.Interfaces = all[:n%8]
		p.apply()
		eventually(t, "a change", func() error {
			if n%8 > 0 {
				if err := p.has(fmt.Sprintf("eth%d", n%8)); err != nil {
					return err
				}
			}
			return p.hasNot(fmt.Sprintf("eth%d", n%8+1))
		})
	}
	for n := range 10 {
		turn(n * 3)
	}
	before, threads := fds(), tasks(t, p)
	// Every turn makes or removes three to five interfaces.
	for n := range 60 {
		turn(n * 3)
	}
	turn(0)
	eventually(t, "everything is given back", func() error {
		if now := fds(); now > before+2 {
			return fmt.Errorf("%d descriptors, before %d", now, before)
		}
		// Threads come and go by themselves; the turns would have left one each.
		if now := tasks(t, p); now > threads+30 {
			return fmt.Errorf("%d threads, before %d", now, threads)
		}
		if out := p.inOwn("ip -o link show"); strings.Contains(out, "c9sl") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	p.cmd = nil
	if err := p.has("eth0"); err != nil {
		t.Errorf("the end of the sidecar took an interface along: %v", err)
	}
}

func tasks(t *testing.T, p *pod) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.child()))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
