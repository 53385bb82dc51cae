package nft

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

func newNamespace(t *testing.T) *nspace.Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	ns, err := nspace.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

// A table that agrees is left alone; another configuration, or a table without one of
// its chains, is replaced.
func TestApply(t *testing.T) {
	ns := newNamespace(t)
	c := Config{Underlay: "c9s0", TCP: []uint16{14802}}
	apply := func(want bool) {
		t.Helper()
		err := ns.Do(func() error {
			changed, err := Table{}.Apply(c)
			if err == nil && changed != want {
				err = fmt.Errorf("changed: %v, want %v", changed, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	apply(true)
	apply(false)
	c.TCP = []uint16{14802, 14803}
	apply(true)
	apply(false)
	err := ns.Do(func() error {
		conn, err := nftables.New()
		if err != nil {
			return err
		}
		conn.DelChain(&nftables.Chain{Name: "forward", Table: &nftables.Table{Name: TableName, Family: nftables.TableFamilyINet}})
		return conn.Flush()
	})
	if err != nil {
		t.Fatal(err)
	}
	apply(true)
	apply(false)
}

// TestSets: more addresses than a netlink message has room for, of both families, and their
// end.
func TestSets(t *testing.T) {
	const each = 3000
	ns := newNamespace(t)
	c := Config{Underlay: "c9s0", Leg: "leg", Mesh: "mesh", DenyTo: []netip.Addr{deviceIP.Addr()}}
	for i := range each {
		c.DenyFrom = append(c.DenyFrom, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), netip.AddrFrom16([16]byte{0x20, 1, 14: byte(i >> 8), 15: byte(i)}))
	}
	sizes := func() map[string]int {
		out := map[string]int{}
		err := ns.Do(func() error {
			if _, err := (Table{}).Apply(c); err != nil {
				return err
			}
			conn, err := nftables.New()
			if err != nil {
				return err
			}
			sets, err := conn.GetSets(&nftables.Table{Name: TableName, Family: nftables.TableFamilyINet})
			if err != nil {
				return err
			}
			for _, s := range sets {
				elements, err := conn.GetSetElements(s)
				if err != nil {
					return err
				}
				out[s.Name] = len(elements)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got, want := sizes(), (map[string]int{"deny-to4": 1, "deny-from4": each, "deny-from6": each}); !maps.Equal(got, want) {
		t.Errorf("sets %v, want %v", got, want)
	}
	c.DenyTo, c.DenyFrom = nil, nil
	if got := sizes(); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

// router is a sidecar's namespace with the three neighbours that its table tells apart:
// the device behind its leg, the cluster behind the underlay, and the device behind the
// leg of one of the lab's links.
type router struct {
	*testing.T
	own, device, cluster, stranger *nspace.Namespace
}

var (
	gateway   = netip.MustParseAddr("172.20.20.1")
	deviceIP  = netip.MustParsePrefix("172.20.20.11/24")
	podIP     = netip.MustParseAddr("10.1.0.5")
	clusterIP = netip.MustParseAddr("10.1.0.1")
)

func newRouter(t *testing.T) *router {
	r := &router{T: t, own: newNamespace(t), device: newNamespace(t), cluster: newNamespace(t), stranger: newNamespace(t)}
	r.join(r.device, "leg", gateway, deviceIP.Addr(), true)
	r.join(r.cluster, "c9s0", podIP, clusterIP, false)
	r.join(r.stranger, "wire1", netip.MustParseAddr("192.168.7.1"), netip.MustParseAddr("192.168.7.2"), true)
	err := r.own.Do(func() error {
		var errs []error
		for name, value := range map[string]string{"ip_forward": "1", "conf/all/rp_filter": "0", "icmp_ratelimit": "0"} {
			errs = append(errs, os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// join connects a neighbour over a /24; its default route leads here if def.
func (r *router) join(to *nspace.Namespace, name string, here, there netip.Addr, def bool) {
	r.Helper()
	own, err := netlink.NewHandleAt(netns.NsHandle(r.own.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		r.Fatal(err)
	}
	defer own.Close()
	far, err := netlink.NewHandleAt(netns.NsHandle(to.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		r.Fatal(err)
	}
	defer far.Close()
	if err := own.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "eth0", PeerNamespace: netlink.NsFd(to.FD())}); err != nil {
		r.Fatal(err)
	}
	for _, end := range []struct {
		nl   *netlink.Handle
		name string
		addr netip.Addr
	}{{own, name, here}, {far, "eth0", there}} {
		l, err := end.nl.LinkByName(end.name)
		if err != nil {
			r.Fatal(err)
		}
		a := &netlink.Addr{IPNet: &net.IPNet{IP: end.addr.AsSlice(), Mask: net.CIDRMask(24, 32)}}
		if err := errors.Join(end.nl.AddrAdd(l, a), end.nl.LinkSetUp(l)); err != nil {
			r.Fatal(err)
		}
	}
	if def {
		if err := far.RouteAdd(&netlink.Route{Gw: here.AsSlice()}); err != nil {
			r.Fatal(err)
		}
	}
}

// serve accepts connections in a namespace, on any address, and writes from where they
// come.
func (r *router) serve(ns *nspace.Namespace, port int) {
	r.Helper()
	var l net.Listener
	err := ns.Do(func() (err error) {
		l, err = net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port))
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, c.RemoteAddr().(*net.TCPAddr).IP)
			c.Close()
		}
	}()
}

// answerTime is how long a connection may take. A reject that arrives while the kernel is
// still in connect is ignored (tcp_v4_err): the second SYN follows after a second.
const answerTime = 2500 * time.Millisecond

// dial connects from a namespace and returns what the server saw, or the error.
func (r *router) dial(ns *nspace.Namespace, to netip.Addr, port uint16) (from string, err error) {
	var fd int
	err = ns.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(answerTime.Nanoseconds())
	for _, opt := range []int{unix.SO_SNDTIMEO, unix.SO_RCVTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, opt, &limit); err != nil {
			return "", err
		}
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(port), Addr: to.As4()}); err != nil {
		return "", err
	}
	b := make([]byte, 64)
	n, err := unix.Read(fd, b)
	return string(b[:max(n, 0)]), err
}

func TestTable(t *testing.T) {
	r := newRouter(t)
	for _, port := range []int{22, 53, 14802} {
		r.serve(r.own, port)
	}
	r.serve(r.device, 22)
	r.serve(r.cluster, 80)
	r.serve(r.cluster, 14802)
	const timeout = syscall.EINPROGRESS // of a connect with SO_SNDTIMEO
	for _, external := range []bool{false, true} {
		c := Config{
			Underlay: "c9s0", Leg: "leg", Mesh: "mesh", PodAddrs: []netip.Addr{podIP}, Mgmt: []Network{{deviceIP, gateway}},
			ExternalAccess: external, UnderlayMTU: 1500, MeshMTU: 1450, Resolver: 53, TCP: []uint16{14802},
		}
		if err := r.own.Do(func() error { _, err := Table{}.Apply(c); return err }); err != nil {
			t.Fatal(err)
		}
		var dials sync.WaitGroup
		out, outErr := "", error(syscall.EHOSTUNREACH)
		if external {
			out, outErr = podIP.String(), nil
		}
		for _, tt := range []struct {
			name string
			from *nspace.Namespace
			to   netip.Addr
			port uint16
			seen string
			err  error
		}{
			{"the device resolves at the gateway", r.device, gateway, 53, deviceIP.Addr().String(), nil},
			{"and reaches nothing else there", r.device, gateway, 22, "", syscall.ECONNREFUSED},
			{"nor the sidecar by the Pod's address", r.device, podIP, 14802, "", syscall.ECONNREFUSED},
			{"the device's way out", r.device, clusterIP, 80, out, outErr},
			{"never to other sidecars", r.device, clusterIP, 14802, "", syscall.EHOSTUNREACH},
			{"the cluster reaches the device's ports", r.cluster, podIP, 22, gateway.String(), nil},
			{"and the sidecar's own", r.cluster, podIP, 14802, clusterIP.String(), nil},
			{"a device reaches nothing by a link's leg", r.stranger, netip.MustParseAddr("192.168.7.1"), 22, "", timeout},
			{"nor the management network", r.stranger, deviceIP.Addr(), 22, "", timeout},
		} {
			dials.Go(func() {
				if seen, err := r.dial(tt.from, tt.to, tt.port); seen != tt.seen || !errors.Is(err, tt.err) {
					t.Errorf("external access %v: %s: seen from %q, %v; want %q, %v", external, tt.name, seen, err, tt.seen, tt.err)
				}
			})
		}
		dials.Wait()
	}
}

// TestExternal: outside the lab, the longest prefix that matches decides, and without one the
// access of the lab; who comes in is answered.
func TestExternal(t *testing.T) {
	r := newRouter(t)
	far := []netip.Addr{clusterIP, netip.MustParseAddr("10.1.0.130"), netip.MustParseAddr("10.1.0.131")}
	cluster, err := netlink.NewHandleAt(netns.NsHandle(r.cluster.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	eth0, err := cluster.LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range far[1:] {
		if err := cluster.AddrAdd(eth0, &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(24, 32)}}); err != nil {
			t.Fatal(err)
		}
	}
	r.serve(r.cluster, 80)
	r.serve(r.device, 22)
	rule := func(prefix string, allow bool) contract.ExternalRule {
		return contract.ExternalRule{Prefix: netip.MustParsePrefix(prefix), Allow: allow}
	}
	for _, tt := range []struct {
		name   string
		access bool
		rules  []contract.ExternalRule
		want   [3]bool // by address of far
	}{
		{"no rules, open", true, nil, [3]bool{true, true, true}},
		{"no rules, closed", false, nil, [3]bool{}},
		{"half closed", true, []contract.ExternalRule{rule("10.1.0.128/25", false)}, [3]bool{true, false, false}},
		{"half open", false, []contract.ExternalRule{rule("10.1.0.128/25", true)}, [3]bool{false, true, true}},
		{"one open in a closed half", true, []contract.ExternalRule{rule("10.1.0.131/32", true), rule("10.1.0.128/25", false)}, [3]bool{true, false, true}},
		{"one closed in an open half", false, []contract.ExternalRule{rule("10.1.0.131/32", false), rule("10.1.0.128/25", true)}, [3]bool{false, true, false}},
		{"nothing but one", true, []contract.ExternalRule{rule("10.1.0.130/32", true), rule("0.0.0.0/0", false)}, [3]bool{false, true, false}},
		{"another family", true, []contract.ExternalRule{rule("2001:db8::/32", false), rule("::/0", false)}, [3]bool{true, true, true}},
	} {
		c := Config{
			Underlay: "c9s0", Leg: "leg", Mesh: "mesh", PodAddrs: []netip.Addr{podIP}, Mgmt: []Network{{deviceIP, gateway}},
			ExternalAccess: tt.access, External: tt.rules, UnderlayMTU: 1500, MeshMTU: 1450, Resolver: 53,
		}
		for _, changed := range []bool{true, false} {
			err := r.own.Do(func() error {
				did, err := Table{}.Apply(c)
				if err == nil && did != changed {
					err = fmt.Errorf("%s: changed: %v, want %v", tt.name, did, changed)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		var dials sync.WaitGroup
		for i, to := range far {
			dials.Go(func() {
				_, err := r.dial(r.device, to, 80)
				if tt.want[i] && err != nil || !tt.want[i] && !errors.Is(err, syscall.EHOSTUNREACH) {
					t.Errorf("%s: to %s: %v, want open: %v", tt.name, to, err, tt.want[i])
				}
			})
		}
		dials.Go(func() {
			if _, err := r.dial(r.cluster, podIP, 22); err != nil {
				t.Errorf("%s: who comes in is not answered: %v", tt.name, err)
			}
		})
		dials.Wait()
	}
}
