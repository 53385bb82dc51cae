package resolve

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// dnsServer answers A questions from a table and counts them.
func dnsServer(t *testing.T, table map[string]netip.Addr) (addr string, asked *atomic.Int64) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	asked = &atomic.Int64{}
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			a, ok := table[q.Name.String()]
			switch {
			case !ok:
				m.RCode = dnsmessage.RCodeNameError
			case q.Type == dnsmessage.TypeA:
				asked.Add(1)
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 5},
					Body:   &dnsmessage.AResource{A: a.As4()},
				}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = c.WriteTo(out, from)
			}
		}
	}()
	return c.LocalAddr().String(), asked
}

func TestLookup(t *testing.T) {
	old, moved := netip.MustParseAddr("10.244.0.7"), netip.MustParseAddr("10.244.1.9")
	table := map[string]netip.Addr{"r2.c9s-nodes.demo.svc.cluster.local.": old, "edge.example.com.": moved}
	server, asked := dnsServer(t, table)
	r := New([]string{server}, []string{"demo.svc.cluster.local", "svc.cluster.local"})
	ctx := context.Background()
	check := func(pod string, want ...netip.Addr) {
		t.Helper()
		got, err := r.Lookup(ctx, pod)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v %v, want %v", pod, got, err, want)
		}
	}
	check("r2", old)
	check("r2", old)
	if n := asked.Load(); n != 1 {
		t.Errorf("%d questions for what was just answered", n)
	}
	// Not known yet is no error.
	check("r3")
	// The directory comes first; it may know more than the DNS.
	if !r.SetKnown(map[string][]netip.Addr{"r2": {moved}}) || r.SetKnown(map[string][]netip.Addr{"r2": {moved}}) {
		t.Error("what is new in the directory is not reported")
	}
	check("r2", moved, old)
	r.Forget("r2")
	check("r2", moved, old)
	if n := asked.Load(); n != 2 {
		t.Errorf("%d questions, want one more", n)
	}
	if got, err := r.Name(ctx, "edge.example.com"); err != nil || !slices.Equal(got, []netip.Addr{moved}) {
		t.Errorf("a name outside: %v %v", got, err)
	}
}
