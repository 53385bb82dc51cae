package podnet

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/links"
)

// mgmtDoc is a node with the n-th management address.
func mgmtDoc(n int) links.Document {
	last := byte(n)
	return links.Document{
		Hostname: "PE_" + string(rune('0'+n%10)),
		Mgmt: &links.Mgmt{
			Interface: "eth0", MAC: fmt.Sprintf("02:00:00:00:00:%02x", n), MTU: 1500,
			IPv4:      netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 20, 20, last}), 24),
			IPv6:      netip.PrefixFrom(v6(last), 64),
			GatewayV4: netip.MustParseAddr("172.20.20.1"), GatewayV6: netip.MustParseAddr("3fff:172:20:20::1"),
			ExternalAccess: true,
		},
		Ports: []lab.Port{{Container: 22, Protocol: "TCP"}},
	}
}

func v6(last byte) netip.Addr {
	a := netip.MustParseAddr("3fff:172:20:20::").As16()
	a[15] = last
	return netip.AddrFrom16(a)
}

// directory gives every Pod the lab's directory and all addresses.
func directory(pods ...*pod) {
	dir := links.Directory{Version: links.DirectoryVersion, Lab: "demo"}
	known := links.Addresses{Version: links.AddressesVersion, Pods: map[string][]netip.Addr{}}
	hosts := ""
	for _, p := range pods {
		n := links.DirectoryNode{Name: p.name, Pod: p.name, Names: []string{p.name}}
		if m := p.doc.Mgmt; m != nil {
			n.IPv4, n.IPv6, n.MAC = m.IPv4.Addr(), m.IPv6.Addr(), m.MAC
			hosts += n.IPv4.String() + "\t" + p.name + "\n" + n.IPv6.String() + "\t" + p.name + "\n"
		}
		dir.Nodes = append(dir.Nodes, n)
		known.Pods[p.name] = []netip.Addr{netip.MustParseAddr(p.ip4), netip.MustParseAddr(p.ip6)}
	}
	for _, p := range pods {
		p.writeJSON("directory/directory.json", dir)
		p.writeJSON("directory/addresses.json", known)
		p.write("directory/hosts", hosts)
	}
}

func TestManagement(t *testing.T) {
	c := newCluster(t)
	a, b := c.newPod("r1", mgmtDoc(11)), c.newPod("r2", mgmtDoc(12))
	directory(a, b)
	for _, p := range c.pods {
		p.start()
	}
	for _, p := range c.pods {
		p.waitStarted()
	}
	for _, to := range []string{"172.20.20.1", "3fff:172:20:20::1", "172.20.20.12", "3fff:172:20:20::c", gateway4, gateway6} {
		if err := ping(a.ns, to, 5*time.Second); err != nil {
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
		eventually(t, 40*time.Second, "connect to "+way.to, func() error { return wantFrom(way.ns, way.to, way.from) })
	}
}
