package podnet

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

const frrDir = "/usr/lib/frr"

// router is FRR in a Pod, beside the sidecar: one process a daemon.
type router struct {
	*pod
	dir string
	nl  *netlink.Handle
}

// route runs FRR's daemons in the Pod until the test ends.
func (p *pod) route(config string, daemons ...string) *router {
	p.t.Helper()
	// A socket's path has at most 107 bytes, which a test's own folder exceeds.
	dir, err := os.MkdirTemp("", "frr")
	if err != nil {
		p.t.Fatal(err)
	}
	// The daemons are the user frr's, as the package has them.
	frr, err := user.Lookup("frr")
	if err != nil {
		p.t.Fatal(err)
	}
	uid, _ := strconv.Atoi(frr.Uid)
	gid, _ := strconv.Atoi(frr.Gid)
	own := func(path string) {
		if err := os.Chown(path, uid, gid); err != nil {
			p.t.Fatal(err)
		}
	}
	own(dir)
	r := &router{pod: p, dir: dir}
	p.t.Cleanup(func() { os.RemoveAll(dir) })
	for _, d := range append([]string{"zebra"}, daemons...) {
		file := filepath.Join(dir, d+".conf")
		text := "hostname " + p.name + "\n" + config
		if err := os.WriteFile(file, []byte(sections(text, d)), 0o600); err != nil {
			p.t.Fatal(err)
		}
		own(file)
		args := []string{"netns", "exec", p.ns, filepath.Join(frrDir, d), "-f", file,
			"-i", filepath.Join(dir, d+".pid"), "-z", filepath.Join(dir, "zserv.api"), "--vty_socket", dir, "-P", "0", "--log", "file:" + filepath.Join(dir, d+".log")}
		if d == "bfdd" {
			args = append(args, "--bfdctl", filepath.Join(dir, "bfdd.sock"))
		}
		cmd := exec.Command("ip", args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		eventually(p.t, d+" runs", func() error {
			_, err := os.Stat(filepath.Join(dir, d+".vty"))
			return err
		})
	}
	ns, err := netns.GetFromName(p.ns)
	if err != nil {
		p.t.Fatal(err)
	}
	defer ns.Close()
	if r.nl, err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(r.nl.Close)
	return r
}

// sections keeps what a daemon understands of a configuration: a line "@a b" says
// whose the lines after it are.
func sections(text, daemon string) string {
	var out []string
	mine := true
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "@") {
			mine = strings.Contains(" "+strings.TrimSpace(line[1:])+" ", " "+daemon+" ")
		} else if mine {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// show is the answer of a vtysh command.
func (r *router) show(command string) string {
	out, err := run("vtysh", "--vty_socket", r.dir, "-c", "show "+command)
	if err != nil {
		return err.Error() + ": " + out
	}
	return out
}

// hops are the interfaces by which the kernel reaches an address.
func (r *router) hops(to string) (out []string) {
	dst := &net.IPNet{IP: net.ParseIP(to), Mask: net.CIDRMask(32, 32)}
	routes, _ := r.nl.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: dst, Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_DST|netlink.RT_FILTER_TABLE)
	name := func(index int) string {
		if l, err := r.nl.LinkByIndex(index); err == nil {
			return l.Attrs().Name
		}
		return "?"
	}
	for _, rt := range routes {
		for _, h := range rt.MultiPath {
			if h.Flags&(unix.RTNH_F_DEAD|unix.RTNH_F_LINKDOWN) == 0 {
				out = append(out, name(h.LinkIndex))
			}
		}
		if len(rt.MultiPath) == 0 {
			out = append(out, name(rt.LinkIndex))
		}
	}
	return out
}

// reaches waits until the kernel's way to an address is by just these interfaces.
func (r *router) reaches(to string, want ...string) {
	r.t.Helper()
	begin := time.Now()
	for {
		have := r.hops(to)
		if len(have) == len(want) && strings.Join(have, " ") == strings.Join(want, " ") {
			return
		}
		if time.Since(begin) > patience {
			r.t.Fatalf("%s reaches %s by %v, not by %v, after %v\n%s\n%s", r.name, to, have, want, patience, r.show("ip ospf neighbor"), r.show("ip route"))
		}
		time.Sleep(time.Millisecond)
	}
}

// contains waits for words in the answer of a command.
func (r *router) contains(command string, words ...string) {
	r.t.Helper()
	eventually(r.t, r.name+": "+command, func() error {
		out := r.show(command)
		for _, w := range words {
			if !strings.Contains(out, w) {
				return fmt.Errorf("no %q in:\n%s", w, out)
			}
		}
		return nil
	})
}

// Three FRR routers: two parallel wires between r1 and r2, one between r2 and r3,
// and a segment with all three.
//
//	r1 eth1 ---- eth1 r2 eth3 ---- eth1 r3
//	   eth2 ---- eth2
//	   eth9 ------ eth9 ---------- eth9     (bridge in the Pod sw)
func routerDocs() (sw contract.Links, r [3]contract.Links) {
	port := func(node, name, addr, peer string, id int) contract.Interface {
		i := iface(node, name, 256*id+len(r[0].Interfaces)+len(r[1].Interfaces)+len(r[2].Interfaces)+1)
		i.IPv4 = netip.MustParsePrefix(addr)
		i.Wire = &contract.Wire{ID: contract.WireID(id), PeerPod: peer, PeerNode: peer, PeerInterface: name, Datapath: "udp"}
		return i
	}
	sw.Bridges = []contract.Bridge{{Name: "br1"}}
	sw.Hostname = "sw"
	for n := range r {
		name := fmt.Sprintf("r%d", n+1)
		r[n].Hostname, r[n].Sysctls = name, map[string]string{"net.ipv4.ip_forward": "1"}
		r[n].Interfaces = append(r[n].Interfaces, port(name, "eth9", fmt.Sprintf("10.0.9.%d/24", n+1), "sw", 11+n))
		p := port("sw", "p"+name, "0.0.0.0/0", name, 11+n)
		p.IPv4, p.Bridge = netip.Prefix{}, "br1"
		p.MAC = fmt.Sprintf("aa:c1:ab:0f:00:%02x", n)
		sw.Interfaces = append(sw.Interfaces, p)
	}
	for _, w := range []struct{ a, b, id int }{{0, 1, 1}, {0, 1, 2}, {1, 2, 3}} {
		na, nb := fmt.Sprintf("r%d", w.a+1), fmt.Sprintf("r%d", w.b+1)
		r[w.a].Interfaces = append(r[w.a].Interfaces, port(na, fmt.Sprintf("eth%d", w.id), fmt.Sprintf("10.0.%d.1/24", w.id), nb, w.id))
		r[w.b].Interfaces = append(r[w.b].Interfaces, port(nb, fmt.Sprintf("eth%d", w.id), fmt.Sprintf("10.0.%d.2/24", w.id), na, w.id))
	}
	return sw, r
}

func frrConfig(n int) string {
	bgp := ""
	if n < 3 {
		bgp = fmt.Sprintf(`@bfdd
bfd
 profile fast
  detect-multiplier 3
  receive-interval 100
  transmit-interval 100
 exit
exit
@bgpd
router bgp %d
 no bgp ebgp-requires-policy
 no bgp network import-check
 timers bgp 60 180
 neighbor 10.0.1.%d remote-as %d
 neighbor 10.0.1.%d timers connect 1
 neighbor 10.0.1.%d bfd profile fast
 address-family ipv4 unicast
  network 198.51.100.%d/32
 exit-address-family
exit
`, 65000+n, 3-n, 65000+3-n, 3-n, 3-n, n)
	}
	return fmt.Sprintf(`@zebra
no zebra nexthop kernel enable
interface lo
 ip address 10.255.0.%[1]d/32
exit
@ospfd
interface eth1
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 4
interface eth2
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 4
interface eth3
 ip ospf network point-to-point
 ip ospf hello-interval 1
 ip ospf dead-interval 4
interface eth9
 ip ospf hello-interval 1
 ip ospf dead-interval 20
 ip ospf cost 100
 ip ospf priority %[2]d
router ospf
 ospf router-id 10.255.0.%[1]d
 network 10.0.0.0/16 area 0
 network 10.255.0.0/16 area 0
 timers throttle spf 0 20 200
exit
@isisd
interface eth1
 ip router isis core
 isis network point-to-point
 isis circuit-type level-2-only
 isis hello-interval 1
exit
router isis core
 net 49.0001.0000.0000.000%[1]d.00
 is-type level-2-only
exit
`, n, 10*(4-n)) + bgp
}

// needFRR skips a test where one of these daemons is not installed.
func needFRR(t *testing.T, daemons ...string) {
	t.Helper()
	needRoot(t)
	for _, d := range append([]string{"zebra"}, daemons...) {
		if _, err := os.Stat(filepath.Join(frrDir, d)); err != nil {
			t.Skip("needs FRR: apt-get install frr")
		}
	}
}

func TestRouters(t *testing.T) {
	needFRR(t, "ospfd", "isisd", "bgpd", "bfdd")
	c := newCluster(t)
	swDoc, docs := routerDocs()
	c.newPod("sw", swDoc)
	var r [3]*router
	var pods [3]*pod
	for n := range docs {
		pods[n] = c.newPod(fmt.Sprintf("r%d", n+1), docs[n])
	}
	c.startAll()
	for _, p := range c.pods {
		eventually(t, p.name+" is ready", p.ready)
	}
	begin := time.Now()
	for n, p := range pods {
		r[n] = p.route(frrConfig(n+1), "ospfd", "isisd", "bgpd", "bfdd")
	}
	// OSPF, point to point and with an election: the first priority wins as all
	// start within the waiting time, which is the dead interval. Who is silent for
	// longer than that would not be elected again.
	r[0].contains("ip ospf interface eth1", "Network Type POINTOPOINT", "Neighbor Count is 1, Adjacent neighbor count is 1")
	for n := range r {
		r[n].contains("ip ospf interface eth9", "Network Type BROADCAST", "Neighbor Count is 2, Adjacent neighbor count is 2", "Designated Router (ID) 10.255.0.1", "Backup Designated Router (ID) 10.255.0.2")
	}
	r[0].contains("ip ospf database network", "Attached Router: 10.255.0.1", "Attached Router: 10.255.0.2", "Attached Router: 10.255.0.3")
	// ECMP over the two parallel wires.
	r[0].reaches("10.255.0.2", "eth1", "eth2")
	r[0].reaches("10.255.0.3", "eth1", "eth2")
	// IS-IS: hellos are padded to the link's MTU.
	r[0].contains("isis neighbor", "r2", "Up")
	if n := longestHello(t, r[0].ns, "eth1", 9400); n < 9400 {
		t.Errorf("the longest IS-IS hello has %d bytes", n)
	} else {
		t.Logf("IS-IS hellos of %d bytes", n)
	}
	// BGP with BFD.
	r[0].contains("bfd peers", "Status: up", "Detect-multiplier: 3", "Transmission interval: 100ms")
	r[0].reaches("198.51.100.2", "eth1")
	t.Logf("all is up %v after the routers' start", time.Since(begin).Round(100*time.Millisecond))

	cutWire(t, r)
	silentWire(t, r)
	killedPeer(t, r)
}

// cutWire takes one end down, as a technician pulls a cable.
func cutWire(t *testing.T, r [3]*router) {
	var at, far []time.Duration
	for range 5 {
		begin := time.Now()
		r[0].in("ip link set eth1 down")
		r[1].reaches("10.255.0.1", "eth2")
		far = append(far, time.Since(begin))
		r[0].reaches("10.255.0.2", "eth2")
		at = append(at, time.Since(begin))
		r[0].in("ip link set eth1 up")
		r[0].reaches("10.255.0.2", "eth1", "eth2")
		r[1].reaches("10.255.0.1", "eth1", "eth2")
	}
	t.Logf("OSPF routes away from a cut wire: far end after %v, near end after %v (with 5 ms or so of the ip program)", far, at)
}

// silentWire: both ends stay up and nothing passes, so only BFD tells. BGP would by
// itself after 180 s, for which nobody here waits.
func silentWire(t *testing.T, r [3]*router) {
	var all []time.Duration
	for range 3 {
		eventually(t, "BGP is up", func() error {
			for n := range 2 {
				if out := r[n].show("bfd peers"); !strings.Contains(out, "Status: up") {
					return fmt.Errorf("r%d: %s", n+1, out)
				}
			}
			for n := range 2 {
				if hops := r[n].hops(fmt.Sprintf("198.51.100.%d", 2-n)); len(hops) != 1 {
					return fmt.Errorf("r%d: %v", n+1, hops)
				}
			}
			return nil
		})
		r[0].impair("eth1", &contract.Impairment{Loss: 100})
		begin := time.Now()
		r[1].reaches("198.51.100.1")
		all = append(all, time.Since(begin))
		r[0].impair("eth1", nil)
	}
	t.Logf("BGP withdraws by BFD (3 x 100 ms) after a wire went silent, from the change of links.json: %v", all)
}

// killedPeer: the other Pod dies, and the wires lose their carrier.
func killedPeer(t *testing.T, r [3]*router) {
	r[0].reaches("10.255.0.2", "eth1", "eth2")
	r[1].kill()
	begin := time.Now()
	for _, name := range []string{"eth1", "eth2"} {
		eventually(t, name+" loses its carrier", func() error {
			if r[0].carrier(name) == nil {
				return fmt.Errorf("it has one")
			}
			return nil
		})
	}
	t.Logf("carriers down after %v", time.Since(begin))
	r[1].start()
	r[0].reaches("10.255.0.2", "eth1", "eth2")
	t.Logf("and routes back after %v", time.Since(begin))
}

// impair changes the impairment of what an interface sends.
func (p *pod) impair(name string, imp *contract.Impairment) {
	p.t.Helper()
	for n := range p.doc.Interfaces {
		if p.doc.Interfaces[n].Name == name {
			p.doc.Interfaces[n].Wire.Impairment = imp
		}
	}
	p.apply()
}

// longestHello listens for IS-IS hellos until one is as long as wanted.
func longestHello(t *testing.T, ns, name string, want int) int {
	t.Helper()
	fd, err := packetSocket(ns, name)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	longest, buf := 0, make([]byte, 70000)
	for end := time.Now().Add(patience); longest < want && time.Now().Before(end); {
		n, from, err := unix.Recvfrom(fd, buf, 0)
		ll, ok := from.(*unix.SockaddrLinklayer)
		// LLC's OSI network layer, FE FE 03, and IS-IS' discriminator, 83.
		if err == nil && ok && ll.Pkttype != unix.PACKET_OUTGOING && n > 18 && string(buf[14:18]) == "\xfe\xfe\x03\x83" {
			longest = max(longest, n)
		}
	}
	return longest
}
