package podnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/c9s-lab/c9s/sidecar/dns"
)

// clusterDNS answers in the cluster's namespace, at its gateway, with one address for any
// name of example.org, and with the address that asked for who.example.org.
func (c *cluster) clusterDNS() {
	c.t.Helper()
	for _, at := range []string{gateway4} {
		var u net.PacketConn
		if err := withNS(c.name, func() (err error) { u, err = net.ListenPacket("udp", net.JoinHostPort(at, "53")); return err }); err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { u.Close() })
		go func() {
			buffer := make([]byte, 4096)
			for {
				n, from, err := u.ReadFrom(buffer)
				if err != nil {
					return
				}
				var m dnsmessage.Message
				if m.Unpack(buffer[:n]) != nil {
					continue
				}
				q := m.Questions[0]
				m.Response, m.Additionals = true, nil
				switch name := q.Name.String(); {
				case !strings.HasSuffix(name, "example.org."):
					m.RCode = dnsmessage.RCodeNameError
				case q.Type == dnsmessage.TypeA:
					a := netip.MustParseAddr("192.0.2.99")
					if name == "who.example.org." {
						a = netip.MustParseAddrPort(from.String()).Addr().Unmap()
					}
					m.Answers = []dnsmessage.Resource{{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: a.As4()},
					}}
				}
				if out, err := m.Pack(); err == nil {
					_, _ = u.WriteTo(out, from)
				}
			}
		}()
	}
}

// lookup resolves a name in a namespace at a server, by UDP or TCP.
func lookup(ns, network, server, name string) (string, error) {
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialIn(ns)(ctx, network, net.JoinHostPort(server, "53"))
	}}
	addrs, err := r.LookupHost(context.Background(), name)
	slices.Sort(addrs)
	return strings.Join(addrs, " "), err
}

// A device resolves the lab's names and the cluster's wherever its default route leads, and
// over restarts of its sidecar. Nobody else reaches its resolver.
func TestResolver(t *testing.T) {
	c := newCluster(t)
	c.clusterDNS()
	for n, name := range []string{"r1", "r2", "inside"} {
		doc := mgmtDoc(11 + n)
		if name == "inside" {
			doc.Mgmt.ExternalAccess = false
		} else {
			doc.Interfaces = append(doc.Interfaces, wired(iface(name, "eth1", n+1), 5, []string{"r2", "r1"}[n]))
		}
		p := c.newPod(name, doc)
		p.write("resolv.conf", "search lab.svc.cluster.local\nnameserver "+gateway4+"\noptions ndots:5\n")
	}
	c.startAll()
	a, b, inside := c.pods[0], c.pods[1], c.pods[2]
	want := "nameserver 172.20.20.1\nsearch lab.svc.cluster.local\noptions ndots:5\n"
	if text, err := os.ReadFile(a.dir + "/resolv.conf"); err != nil || string(text) != want {
		t.Errorf("the device has the resolv.conf %q: %v", text, err)
	}
	for _, dev := range []string{"-4 route replace default via 10.9.0.2 dev eth1", "-6 route replace default dev eth1"} {
		a.in("ip " + dev)
	}
	check := func(when string) {
		t.Helper()
		for _, network := range []string{"udp", "tcp"} {
			for _, row := range []struct{ server, name, want string }{
				{"172.20.20.1", "r2.", "172.20.20.12 3fff:172:20:20::c"},
				{"3fff:172:20:20::1", "R1.", "172.20.20.11 3fff:172:20:20::b"},
				{"172.20.20.1", "www.example.org.", "192.0.2.99"},
				{"172.20.20.1", "who.example.org.", a.ip4},
			} {
				if network == "tcp" && strings.HasSuffix(row.name, "org.") {
					continue // this cluster's DNS has no TCP
				}
				eventually(t, fmt.Sprintf("%s: %s of %s by %s", when, row.name, row.server, network), func() error {
					got, err := lookup(a.ns, network, row.server, row.name)
					if err == nil && got != row.want {
						err = fmt.Errorf("it is %s, want %s", got, row.want)
					}
					return err
				})
			}
		}
	}
	check("at first")
	if got, err := lookup(a.ns, "udp", "172.20.20.1", "no.such.name."); err == nil {
		t.Errorf("a name that is not there is %s", got)
	}
	if got, err := lookup(inside.ns, "udp", "172.20.20.1", "r2."); err != nil || got != "172.20.20.12 3fff:172:20:20::c" {
		t.Errorf("a lab's name without external access: %s, %v", got, err)
	}
	if got, err := lookup(inside.ns, "udp", "172.20.20.1", "www.example.org."); err == nil {
		t.Errorf("a name outside without external access is %s", got)
	}
	// From the cluster neither the Pod address nor the gateway leads to the resolver.
	c.in("ip route add 172.20.20.1 via " + a.ip4)
	for _, from := range []struct{ ns, to string }{{c.name, a.ip4}, {c.name, "172.20.20.1"}, {b.ns, a.ip4}, {b.ns, "172.20.20.11"}} {
		if err := closed(from.ns, net.JoinHostPort(from.to, fmt.Sprint(dns.Port))); err != nil {
			t.Error(err)
		}
	}
	// The file is the device's now.
	a.write("resolv.conf", "nameserver 9.9.9.9\n")
	a.kill()
	a.start()
	check("after a restart")
	if text, err := os.ReadFile(a.dir + "/resolv.conf"); err != nil || string(text) != "nameserver 9.9.9.9\n" {
		t.Errorf("the device's own resolv.conf became %q: %v", text, err)
	}
}

// A node without management network has lo and its links, and the kubelet's resolv.conf.
func TestNetworkModeNone(t *testing.T) {
	c := newCluster(t)
	for n, name := range []string{"r1", "r2"} {
		doc := mgmtDoc(11 + n)
		doc.Mgmt = nil
		doc.Interfaces = append(doc.Interfaces, wired(iface(name, "eth1", n+1), 5, []string{"r2", "r1"}[n]))
		c.newPod(name, doc).write("resolv.conf", "nameserver "+gateway4+"\n")
	}
	c.startAll()
	a := c.pods[0]
	eventually(t, "the wire is up", a.ready)
	if got := links(a.in("ip -o link")); !slices.Equal(got, []string{"eth1", "lo"}) {
		t.Errorf("the device has the interfaces %v", got)
	}
	if got := a.in("ip -4 route") + a.in("ip rule"); strings.Contains(got, "10.244") || strings.Contains(got, "148") {
		t.Errorf("the device has routes or rules of the sidecar's: %s", got)
	}
	if text, err := os.ReadFile(a.dir + "/resolv.conf"); err != nil || string(text) != "nameserver "+gateway4+"\n" {
		t.Errorf("resolv.conf became %q: %v", text, err)
	}
	if out := a.inOwn("ss -Hlntu sport = :53"); out != "" {
		t.Errorf("there is a resolver: %s", out)
	}
	if err := errors.Join(pingFrom(a.ns, "eth1", "10.9.0.2", sure), ping(c.name, a.ip4, sure)); err != nil {
		t.Error(err)
	}
}
