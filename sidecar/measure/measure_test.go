package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// network is a chain of namespaces: a, eth1 to eth1 of b, eth2 to eth1 of c. b routes.
type network struct {
	*testing.T
	a, b, c *nspace.Namespace
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	n := &network{T: t}
	for _, to := range []**nspace.Namespace{&n.a, &n.b, &n.c} {
		space, err := nspace.New()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { space.Close() })
		// A router does not resolve its neighbors before duplicate address detection has ended for
		// its link-local address, which takes up to two seconds.
		if err := space.Do(func() error {
			return errors.Join(os.WriteFile("/proc/sys/net/ipv6/conf/all/accept_dad", []byte("0"), 0o644), os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0o644))
		}); err != nil {
			t.Fatal(err)
		}
		*to = space
	}
	n.join(n.a, "eth1", n.b, "eth1")
	n.join(n.b, "eth2", n.c, "eth1")
	for _, set := range []struct {
		space       *nspace.Namespace
		in, address string
		via         string
	}{
		{n.a, "eth1", "10.0.1.1/24", "10.0.1.2"}, {n.b, "eth1", "10.0.1.2/24", ""}, {n.b, "eth2", "10.0.2.2/24", ""}, {n.c, "eth1", "10.0.2.3/24", "10.0.2.2"},
		{n.a, "eth1", "fd00:1::1/64", "fd00:1::2"}, {n.b, "eth1", "fd00:1::2/64", ""}, {n.b, "eth2", "fd00:2::2/64", ""}, {n.c, "eth1", "fd00:2::3/64", "fd00:2::2"},
	} {
		n.in(set.space, func(h *netlink.Handle) error {
			l, err := h.LinkByName(set.in)
			if err != nil {
				return err
			}
			address, err := netlink.ParseAddr(set.address)
			if err != nil {
				return err
			}
			address.Flags = 2 // IFA_F_NODAD
			err = h.AddrAdd(l, address)
			if set.via != "" && err == nil {
				err = h.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Gw: net.ParseIP(set.via)})
			}
			return err
		})
	}
	if err := n.b.Do(func() error {
		return errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644), os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0o644))
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *network) in(space *nspace.Namespace, do func(*netlink.Handle) error) {
	n.Helper()
	h, err := netlink.NewHandleAt(netns.NsHandle(space.FD()))
	if err == nil {
		defer h.Close()
		err = do(h)
	}
	if err != nil {
		n.Fatal(err)
	}
}

func (n *network) join(a *nspace.Namespace, nameA string, b *nspace.Namespace, nameB string) {
	n.Helper()
	n.in(a, func(h *netlink.Handle) error {
		l := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: nameA, MTU: 9500}, PeerName: nameB, PeerNamespace: netlink.NsFd(b.FD())}
		return errors.Join(h.LinkAdd(l), h.LinkSetUp(l))
	})
	n.in(b, func(h *netlink.Handle) error {
		l, err := h.LinkByName(nameB)
		if err != nil {
			return err
		}
		return errors.Join(h.LinkSetMTU(l, 9500), h.LinkSetUp(l))
	})
}

// exchange lets both ends of a link exchange frames.
func (n *network) exchange(a, b *nspace.Namespace, ea, eb contract.FrameEnd) (ra, rb contract.FrameResult) {
	var wg sync.WaitGroup
	at := func(space *nspace.Namespace, e contract.FrameEnd, to *contract.FrameResult) {
		wg.Go(func() {
			_ = space.Do(func() error {
				ctx, cancel := contextFor(n.T, 1500*time.Millisecond)
				defer cancel()
				*to = exchangeAt(ctx, 42, e)
				return nil
			})
		})
	}
	at(a, ea, &ra)
	at(b, eb, &rb)
	wg.Wait()
	return ra, rb
}

func TestExchange(t *testing.T) {
	n := newNetwork(t)
	a, b := contract.FrameEnd{Interface: "eth1", Self: "A:eth1", Peer: "B:eth1"}, contract.FrameEnd{Interface: "eth1", Self: "B:eth1", Peer: "A:eth1"}
	began := time.Now()
	ra, rb := n.exchange(n.a, n.b, a, b)
	for _, r := range []contract.FrameResult{ra, rb} {
		if r.Heard != 9500 || !r.Up || r.MTU != 9500 || r.Error != "" || r.Stranger != "" {
			t.Errorf("%+v", r)
		}
	}
	if took := time.Since(began); took > 1400*time.Millisecond {
		t.Errorf("the exchange did not end early, but after %s", took)
	}
	a.Peer = "X:eth1" // the link leads elsewhere
	if ra, _ = n.exchange(n.a, n.b, a, b); ra.Stranger != "B:eth1" || ra.Heard != 0 {
		t.Errorf("%+v", ra)
	}
	a.Peer = "B:eth1"
	n.in(n.b, func(h *netlink.Handle) error {
		l, err := h.LinkByName("eth1")
		if err != nil {
			return err
		}
		return h.LinkSetMTU(l, 1400)
	})
	if ra, rb = n.exchange(n.a, n.b, a, b); ra.MTU != 9500 || rb.MTU != 1400 || rb.Heard >= 9500 {
		t.Errorf("%+v, %+v", ra, rb)
	}
	b.Size = 9000
	if _, rb = n.exchange(n.a, n.b, a, b); rb.Error != "its MTU is 1400" {
		t.Errorf("%+v", rb)
	}
	b.Interface = "eth7"
	if _, rb = n.exchange(n.a, n.b, a, b); rb.MTU != 0 || !strings.Contains(rb.Error, "moved it to another network namespace") {
		t.Errorf("%+v", rb)
	}
}

func TestPing(t *testing.T) {
	n := newNetwork(t)
	p := &Pod{}
	ping := func(r contract.PingRequest) (out contract.PingResult) {
		_ = n.a.Do(func() error {
			ctx, cancel := contextFor(t, 5*time.Second)
			defer cancel()
			out = p.ping(ctx, r)
			return nil
		})
		return out
	}
	for _, to := range []string{"10.0.2.3", "fd00:2::3"} {
		a := netip.MustParseAddr(to)
		if r := ping(contract.PingRequest{To: a, Count: 5, IntervalMS: 10}); r.Received != 5 || !r.LastAnswered || r.LongestMS != 0 || r.Error != "" {
			t.Errorf("%s: %+v", to, r)
		}
		if r := ping(contract.PingRequest{To: a, Size: 9000}); r.Received != 1 {
			t.Errorf("%s at 9000 bytes: %+v", to, r)
		}
		if r := ping(contract.PingRequest{To: a, Size: 9501, TimeoutMS: 200}); r.Received != 0 || !strings.Contains(r.Error, "larger than the MTU") {
			t.Errorf("%s at 9501 bytes: %+v", to, r)
		}
	}
	if r := ping(contract.PingRequest{To: netip.MustParseAddr("10.0.2.99"), Count: 2, IntervalMS: 50, TimeoutMS: 100}); r.Sent != 2 || r.Received != 0 || r.LastAnswered || r.LongestMS < 50 {
		t.Errorf("nobody: %+v", r)
	}
	if r := ping(contract.PingRequest{To: netip.MustParseAddr("10.0.2.3"), Source: netip.MustParseAddr("10.9.9.9")}); r.Sent != 0 || r.Error != "the node does not have the source address" {
		t.Errorf("a source of somebody else: %+v", r)
	}
}

func TestTrace(t *testing.T) {
	n := newNetwork(t)
	p := &Pod{}
	for to, router := range map[string]string{"10.0.2.3": "10.0.1.2", "fd00:2::3": "fd00:1::2"} {
		var r contract.TraceResult
		_ = n.a.Do(func() error {
			ctx, cancel := contextFor(t, 5*time.Second)
			defer cancel()
			r = p.trace(ctx, contract.TraceRequest{To: netip.MustParseAddr(to), Hops: 8})
			return nil
		})
		if !r.Arrived || len(r.Hops) != 2 || r.Hops[0] != netip.MustParseAddr(router) || r.Hops[1] != netip.MustParseAddr(to) {
			t.Errorf("%s: %+v", to, r)
		}
	}
}

// TestOutages: an outage lasts from the first request without an answer to the next with one.
func TestOutages(t *testing.T) {
	start := time.Unix(0, 0)
	var sent []time.Time
	for i := range 6 {
		sent = append(sent, start.Add(time.Duration(i)*10*time.Millisecond))
	}
	for _, tt := range []struct {
		answered string
		want     []contract.PingOutage
		last     bool
	}{
		{"111111", nil, true},
		{"100111", []contract.PingOutage{{AtMS: 10, LengthMS: 20}}, true},
		{"101001", []contract.PingOutage{{AtMS: 10, LengthMS: 10}, {AtMS: 30, LengthMS: 20}}, true},
		{"111100", []contract.PingOutage{{AtMS: 40, LengthMS: 20}}, false},
		{"000000", []contract.PingOutage{{LengthMS: 60}}, false},
		{"", nil, false},
	} {
		var answered []bool
		for _, c := range tt.answered {
			answered = append(answered, c == '1')
		}
		if got, last := outages(sent[:len(answered)], answered, 10*time.Millisecond); !slices.Equal(got, tt.want) || last != tt.last {
			t.Errorf("%s: %v, %v", tt.answered, got, last)
		}
	}
}

func TestLongestOutages(t *testing.T) {
	all := []contract.PingOutage{{AtMS: 1, LengthMS: 20}, {AtMS: 2, LengthMS: 40}, {AtMS: 3, LengthMS: 20}, {AtMS: 4, LengthMS: 5000}}
	if kept, more := longestOutages(all, 2); more != 2 || len(kept) != 2 || kept[0].AtMS != 2 || kept[1].AtMS != 4 {
		t.Errorf("%+v and %d more", kept, more)
	}
	if kept, more := longestOutages(all, 4); more != 0 || len(kept) != 4 {
		t.Errorf("%+v and %d more", kept, more)
	}
}

func TestNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("# names\n172.20.20.11 R1 r1.lab # first\n3fff::11 R1\nrubbish R2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &Pod{Hosts: file}
	ctx, cancel := contextFor(t, 2*time.Second)
	defer cancel()
	got := p.lookUp(ctx, []string{"R1", "r1.lab"})
	if len(got[0].Addresses) != 2 || got[0].Addresses[1].String() != "3fff::11" || len(got[1].Addresses) != 1 || got[1].Error != "" {
		t.Errorf("%+v", got)
	}
}

func contextFor(t *testing.T, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), limit)
}

// TestGateway: the sidecar pings the node from the gateway, in its own network namespace, and
// gives that back each time.
func TestGateway(t *testing.T) {
	n := newNetwork(t)
	p := &Pod{
		Mgmt: &contract.Mgmt{GatewayV4: netip.MustParseAddr("10.0.1.1"), GatewayV6: netip.MustParseAddr("fd00:1::1")},
		Own: func() (*nspace.Namespace, error) {
			file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", n.a.FD()))
			if err != nil {
				return nil, err
			}
			return nspace.Open(file)
		},
	}
	ctx, cancel := contextFor(t, 10*time.Second)
	defer cancel()
	ping := func(to string) contract.PingRequest {
		return contract.PingRequest{To: netip.MustParseAddr(to), Gateway: true, Count: 3, IntervalMS: 50, TimeoutMS: 2000}
	}
	m := p.Measure(ctx, contract.MeasureRequest{Pings: []contract.PingRequest{ping("10.0.1.2"), ping("fd00:1::2"), ping("10.0.1.99")}})
	if m.Pings[0].Received == 0 || m.Pings[1].Received == 0 || m.Pings[2].Received != 0 {
		t.Errorf("%+v", m.Pings)
	}
	p.Mgmt = nil
	if r := p.ping(ctx, ping("10.0.1.2")); r.Error != "the Pod has no management network" {
		t.Errorf("%+v", r)
	}
}
