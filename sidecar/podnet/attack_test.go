package podnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/mgmt"
)

// spySize is the length of the attacker's datagrams, by which they are told from all
// others.
const spySize = 777

// spy counts the attacker's datagrams that a sidecar's sockets get.
func (p *pod) spy() {
	p.inOwn("nft add table inet spy")
	p.inOwn("nft add chain inet spy in { type filter hook input priority 300 ; }")
	p.inOwn(fmt.Sprintf("nft add rule inet spy in udp length %d counter", spySize+8))
	p.inOwn("nft add chain inet spy first { type filter hook prerouting priority -400 ; }")
	p.inOwn(fmt.Sprintf("nft add rule inet spy first udp length %d udp dport %d counter", spySize+8, devicePort))
}

// devicePort is a port of the devices.
const devicePort = 40001

var spied = regexp.MustCompile(`counter packets (\d+)`)

func (p *pod) spied(chain string) string {
	p.t.Helper()
	m := spied.FindStringSubmatch(p.inOwn("nft list chain inet spy " + chain))
	if m == nil {
		p.t.Fatal("the spy is gone")
	}
	return m[1]
}

var udpTransports = []int{contract.WirePort, contract.MgmtPort, contract.VXLANPort}

// shoot sends a datagram from a namespace to the transports of an address; from, where it
// is valid, is its forged source.
func shoot(ns string, to, from netip.Addr, payload []byte) error {
	return withNS(ns, func() error {
		for _, port := range udpTransports {
			if from.IsValid() {
				if err := forged(from, netip.AddrPortFrom(to, uint16(port)), payload); err != nil {
					return err
				}
				continue
			}
			c, err := net.Dial("udp", netip.AddrPortFrom(to, uint16(port)).String())
			if err != nil {
				return err
			}
			// An answer that the port is closed is what one wants.
			_, err = c.Write(payload)
			c.Close()
			if err != nil && !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.EACCES) {
				return err
			}
		}
		return nil
	})
}

// forged sends an IPv4 packet with any source.
func forged(from netip.Addr, to netip.AddrPort, payload []byte) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	b := make([]byte, 28, 28+len(payload))
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(28+len(payload)))
	copy(b[12:], from.AsSlice())
	copy(b[16:], to.Addr().AsSlice())
	binary.BigEndian.PutUint16(b[20:], 40000)
	binary.BigEndian.PutUint16(b[22:], to.Port())
	binary.BigEndian.PutUint16(b[24:], uint16(8+len(payload)))
	return unix.Sendto(fd, append(b, payload...), 0, &unix.SockaddrInet4{Addr: to.Addr().As4()})
}

// inVXLAN is a frame to a Pod's eth0 as the mesh would carry it.
func inVXLAN(lab, pod string) []byte {
	b := make([]byte, spySize)
	b[0] = 8 // the number is valid (RFC 7348, 5)
	binary.BigEndian.PutUint32(b[4:], uint32(mgmt.VNI(lab))<<8)
	copy(b[8:], mgmt.MAC(pod))
	copy(b[14:], mgmt.MAC("an attacker"))
	b[20], b[21] = 0x88, 0xb5
	return b
}

// closed checks that a namespace cannot connect.
func closed(ns, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := dialIn(ns)(ctx, "tcp", to)
	if err != nil {
		return nil
	}
	c.Close()
	return fmt.Errorf("%s: %w", to, errReached)
}

// Nobody but other sidecars reaches a sidecar's transports: no device by a lab link or by
// eth0, be it root and forge its source, no device of another lab, and no stranger the
// two that have no authentication of their own.
func TestAttackTransports(t *testing.T) {
	c := newCluster(t)
	for n, name := range []string{"r1", "r2", "other"} {
		doc := mgmtDoc(11 + n)
		if name == "other" {
			doc.Lab = "another"
		} else {
			doc.Interfaces = append(doc.Interfaces, wired(iface(name, "eth1", n+1), 5, []string{"r2", "r1"}[n]))
		}
		c.newPod(name, doc)
	}
	a, b, other := c.pods[0], c.pods[1], c.pods[2]
	directory(a, b)
	directory(other)
	for _, p := range c.pods {
		p.start()
	}
	for _, p := range c.pods {
		p.waitStarted()
		p.spy()
	}
	eventually(t, "the wire is up", a.ready)
	lab := "test/demo"
	payload := inVXLAN(lab, "r2")
	if err := errors.Join(ping(a.ns, "172.20.20.12", sure), ping(b.ns, "172.20.20.11", sure)); err != nil {
		t.Fatal(err)
	}

	// What the counters count is counted: a stranger reaches the wire's own socket, which
	// asks for proofs, and neither VXLAN.
	addr := netip.MustParseAddr
	if err := shoot(c.name, addr(b.ip4), netip.Addr{}, payload); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the spy sees the wire's port alone", func() error {
		if n := b.spied("in"); n != "1" {
			return fmt.Errorf("%s datagrams", n)
		}
		return nil
	})

	// By a lab link: the leg is the neighbour that has every address.
	mac := strings.Fields(a.inOwn("cat /sys/class/net/c9sl5/address"))[0]
	for n, leg := range []string{"of the wire", "as it is before the wire has it"} {
		if n > 0 {
			a.inOwn("tc qdisc del dev c9sl5 clsact") // the firewall alone
		}
		for _, to := range []string{a.ip4, b.ip4, "172.20.20.1"} {
			a.in("ip route add " + to + " dev eth1")
			a.in("ip neigh replace " + to + " lladdr " + mac + " dev eth1")
			for _, from := range []netip.Addr{{}, addr(b.ip4), addr(a.ip4)} {
				if err := shoot(a.ns, addr(to), from, payload); err != nil {
					t.Errorf("by eth1 (%s) to %s: %v", leg, to, err)
				}
			}
			if err := closed(a.ns, to+":14802"); err != nil {
				t.Errorf("by eth1 (%s): %v", leg, err)
			}
			a.in("ip route del " + to + " dev eth1")
		}
	}
	// The same by IPv6, also to the leg's own address of that link.
	var local string
	for _, word := range strings.Fields(a.inOwn("ip -6 -o addr show dev c9sl5")) {
		if p, err := netip.ParsePrefix(word); err == nil {
			local = p.Addr().String()
		}
	}
	a.in("ip -6 addr add fd00:9::1/64 dev eth1 nodad")
	for _, to := range []string{a.ip6, b.ip6, "3fff:172:20:20::1"} {
		a.in("ip -6 route add " + to + " dev eth1")
		a.in("ip -6 neigh replace " + to + " lladdr " + mac + " dev eth1")
		if err := shoot(a.ns, addr(to), netip.Addr{}, payload); err != nil {
			t.Errorf("by eth1 to %s: %v", to, err)
		}
		for _, port := range []string{"14802", "53"} {
			if err := closed(a.ns, net.JoinHostPort(to, port)); err != nil {
				t.Errorf("by eth1: %v", err)
			}
		}
		a.in("ip -6 route del " + to + " dev eth1")
	}
	if local != "" {
		a.in("ip -6 neigh replace " + local + " lladdr " + mac + " dev eth1")
		if err := shoot(a.ns, addr(local).WithZone("eth1"), netip.Addr{}, payload); err != nil {
			t.Errorf("by eth1 to %s: %v", local, err)
		}
		if err := closed(a.ns, net.JoinHostPort(local+"%eth1", "14802")); err != nil {
			t.Errorf("by eth1: %v", err)
		}
	}
	// Nothing that comes in by a link is routed, to the cluster or back to the device.
	for _, to := range []string{gateway4, b.ip4, "172.20.20.12"} {
		a.in("ip route add " + to + " dev eth1")
		a.in("ip neigh replace " + to + " lladdr " + mac + " dev eth1")
		if err := pingFrom(a.ns, "eth1", to, time.Second); err == nil {
			t.Errorf("by eth1 %s answers", to)
		}
		a.in("ip route del " + to + " dev eth1")
	}
	// Nor is the leg a neighbour on the link: nobody there has the gateway's address.
	a.in("ip neigh del 172.20.20.1 dev eth1")
	a.in("ip route add 172.20.20.1 dev eth1")
	_ = pingFrom(a.ns, "eth1", "172.20.20.1", time.Second)
	if out := a.in("ip neigh show 172.20.20.1 dev eth1"); !strings.Contains(out, "172.20.20.1") || strings.Contains(out, "lladdr") {
		t.Errorf("the neighbour with the gateway's address: %s", out)
	}
	a.in("ip route del 172.20.20.1 dev eth1")
	// By eth0, the way out that every device has.
	for _, p := range []*pod{a, other} {
		for _, to := range []string{a.ip4, b.ip4, other.ip4, a.ip6, b.ip6, "172.20.20.1", "3fff:172:20:20::1"} {
			if err := shoot(p.ns, addr(to), netip.Addr{}, payload); err != nil {
				t.Errorf("%s by eth0 to %s: %v", p.name, to, err)
			}
			if err := closed(p.ns, net.JoinHostPort(to, "14802")); err != nil {
				t.Errorf("%s by eth0: %v", p.name, err)
			}
		}
		for _, from := range []string{a.ip4, b.ip4, other.ip4, "172.20.20.1"} {
			if err := shoot(p.ns, addr(b.ip4), addr(from), payload); err != nil {
				t.Errorf("%s by eth0 from %s: %v", p.name, from, err)
			}
		}
	}
	// The Pod's address is the sidecar's: the device sends nothing by it.
	if err := withNS(a.ns, func() error { return forged(addr(a.ip4), netip.AddrPortFrom(addr(b.ip4), devicePort), payload) }); err != nil {
		t.Fatal(err)
	}
	if n := b.spied("first"); n != "0" {
		t.Error("a device sends as its sidecar")
	}
	if err := withNS(a.ns, func() error {
		return forged(addr("172.20.20.11"), netip.AddrPortFrom(addr(b.ip4), devicePort), payload)
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the spy sees what the device may send", func() error {
		if n := b.spied("first"); n != "1" {
			return fmt.Errorf("%s datagrams", n)
		}
		return nil
	})
	for p, want := range map[*pod]string{a: "0", b: "1", other: "0"} {
		if n := p.spied("in"); n != want {
			t.Errorf("%s got %s of the attacker's datagrams, want %s", p.name, n, want)
		}
	}
	// The router answers a ping, and leads nowhere but where the device's own address may
	// go.
	if err := ping(a.ns, "172.20.20.1", sure); err != nil {
		t.Error(err)
	}
	// All went on meanwhile.
	if err := errors.Join(pingFrom(a.ns, "eth1", "10.9.0.2", sure), ping(a.ns, "172.20.20.12", sure)); err != nil {
		t.Error(err)
	}
}
