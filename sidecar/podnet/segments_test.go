package podnet

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// absent is how long a test waits for what must not arrive, while something else shows that
// the way is there.
const absent = 600 * time.Millisecond

// TestSegment: the bridge of a segment passes the protocols that its mask has, keeps isolated
// ports apart, and changes both while the lab runs.
func TestSegment(t *testing.T) {
	const lacp, lldp, stp = "0180c2000002", "0180c200000e", "0180c2000000"
	c := newCluster(t)
	doc := contract.Links{Bridges: []contract.Bridge{{Name: "lan", GroupForwardMask: 0}}}
	for n, name := range []string{"r1", "h1", "h2"} {
		i := wired(iface("lan", name+"-eth1", 100+n), n+1, name)
		i.Bridge, i.IPv4 = "lan", netip.Prefix{}
		doc.Interfaces = append(doc.Interfaces, i)
	}
	br := c.newPod("lan", doc)
	for n, name := range []string{"r1", "h1", "h2"} {
		i := wired(iface(name, "eth1", n+1), n+1, "lan")
		i.Wire.PeerInterface = name + "-eth1"
		c.newPod(name, contract.Links{Interfaces: []contract.Interface{i}})
	}
	c.startAll()
	eventually(t, "ready", br.ready)
	r1, h1, h2 := c.pods[1], c.pods[2], c.pods[3]
	index := h1.index("eth1")

	// wanted checks what arrives from one member at another.
	wanted := func(when string, from, to *pod, dst string, want bool) {
		t.Helper()
		limit := sure
		if !want {
			limit = absent
		}
		if got := carries(from.ns, "eth1", to.ns, "eth1", groupFrame(dst), limit) == nil; got != want {
			t.Errorf("%s: %s from %s to %s arrives: %v, want %v", when, dst, from.name, to.name, got, want)
		}
	}
	wanted("without a mask", h1, h2, stp, true)
	wanted("without a mask", h1, h2, lldp, false)
	for _, mask := range []uint16{1 << 14, 1<<14 | 1<<2, 1 << 2, 1<<14 | 1<<2} {
		br.doc.Bridges[0].GroupForwardMask = mask
		br.apply()
		when := fmt.Sprintf("mask %#x", mask)
		for bit, dst := range map[uint]string{14: lldp, 2: lacp} {
			want := mask&(1<<bit) != 0
			eventually(t, when, func() error {
				if got := carries(h1.ns, "eth1", h2.ns, "eth1", groupFrame(dst), absent) == nil; got != want {
					return fmt.Errorf("%s arrives: %v", dst, got)
				}
				return nil
			})
		}
	}
	for _, isolated := range []bool{true, false} {
		for i := range br.doc.Interfaces[1:] {
			br.doc.Interfaces[1+i].Isolated = isolated
		}
		br.apply()
		when := fmt.Sprintf("isolated: %v", isolated)
		eventually(t, when, func() error {
			if got := pingFrom(h1.ns, "eth1", "10.9.0.3", absent) == nil; got == isolated {
				return fmt.Errorf("h1 reaches h2: %v", got)
			}
			return nil
		})
		for _, h := range []*pod{h1, h2} {
			if err := pingFrom(h.ns, "eth1", "10.9.0.1", sure); err != nil {
				t.Errorf("%s: the gateway from %s: %v", when, h.name, err)
			}
		}
		if err := pingFrom(r1.ns, "eth1", "10.9.0.3", sure); err != nil {
			t.Errorf("%s: h2 from the gateway: %v", when, err)
		}
	}
	// A sidecar that starts again finds all as it was.
	br.kill()
	br.start()
	br.waitStarted()
	wanted("after a restart", h1, h2, lacp, true)
	if now := h1.index("eth1"); now != index {
		t.Errorf("eth1 of h1 was recreated: index %d, and %d before", now, index)
	}
}
