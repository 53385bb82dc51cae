package podnet

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// reaches checks pings and a TCP connection with bulk answers, by both families.
func reaches(from, to *pod, limit time.Duration) error {
	m := to.doc.Mgmt
	for _, addr := range []string{m.IPv4.Addr().String(), m.IPv6.Addr().String()} {
		if err := ping(from.ns, addr, limit); err != nil {
			return err
		}
	}
	own := from.doc.Mgmt
	if err := wantFrom(from.ns, m.IPv4.Addr().String()+":22", own.IPv4.Addr().String()); err != nil {
		return err
	}
	return wantFrom(from.ns, "["+m.IPv6.Addr().String()+"]:22", own.IPv6.Addr().String())
}

// reachesNot checks that none of it passes.
func reachesNot(from, to *pod) error {
	m := to.doc.Mgmt
	for _, addr := range []string{m.IPv4.Addr().String(), m.IPv6.Addr().String()} {
		if ping(from.ns, addr, absent) == nil {
			return fmt.Errorf("ping from %s to %s: %w", from.name, addr, errReached)
		}
	}
	for _, addr := range []string{m.IPv4.Addr().String() + ":22", "[" + m.IPv6.Addr().String() + "]:22"} {
		if _, err := ask(from.ns, addr); err == nil {
			return fmt.Errorf("%s to %s: %w", from.name, addr, errReached)
		}
	}
	return nil
}

// TestMgmtReach: a Pod that may not open connections to another one still answers it, whichever
// end enforces that; a third one notices nothing; and all of it changes while the lab runs.
func TestMgmtReach(t *testing.T) {
	c := newCluster(t)
	for n, name := range []string{"r1", "r2", "r3"} {
		c.newPod(name, mgmtDoc(11+n))
	}
	c.startAll()
	r1, r2, r3 := c.pods[0], c.pods[1], c.pods[2]
	for _, p := range c.pods {
		stop, err := echoServer(p.ns, ":22")
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	index := r1.index("eth0")
	open := func(when string, pairs ...[2]*pod) {
		t.Helper()
		for _, pair := range pairs {
			eventually(t, fmt.Sprintf("%s: %s reaches %s", when, pair[0].name, pair[1].name), func() error { return reaches(pair[0], pair[1], sure) })
		}
	}
	all := [][2]*pod{{r1, r2}, {r2, r1}, {r1, r3}, {r3, r1}, {r2, r3}}
	open("without rules", all...)
	for _, tt := range []struct {
		name             string
		sender, receiver bool
	}{{"both ends", true, true}, {"the sender", true, false}, {"the receiver", false, true}} {
		deny := func(m *contract.Mgmt, to, from bool) {
			m.DenyTo, m.DenyFrom = nil, nil
			if to {
				m.DenyTo = []string{"r2"}
			}
			if from {
				m.DenyFrom = []string{"r1"}
			}
		}
		deny(r1.doc.Mgmt, tt.sender, false)
		deny(r2.doc.Mgmt, false, tt.receiver)
		r1.apply()
		r2.apply()
		eventually(t, tt.name+": r1 does not reach r2", func() error { return reachesNot(r1, r2) })
		open(tt.name, all[1:]...)
		if ping(r1.ns, r2.doc.Mgmt.IPv4.Addr().String(), absent) == nil {
			t.Errorf("%s, after r2 reached r1: %v", tt.name, errReached)
		}
	}
	r2.doc.Mgmt.DenyFrom = nil
	r2.apply()
	open("without rules again", all...)
	if now := r1.index("eth0"); now != index {
		t.Errorf("eth0 was recreated: index %d, and %d before", now, index)
	}
}

// TestExternalPrefixes: what a device reaches outside the lab changes while it runs.
func TestExternalPrefixes(t *testing.T) {
	c := newCluster(t)
	p := c.newPod("r1", mgmtDoc(11))
	c.startAll()
	rule := func(prefix string, allow bool) contract.ExternalRule {
		return contract.ExternalRule{Prefix: netip.MustParsePrefix(prefix), Allow: allow}
	}
	for _, tt := range []struct {
		access    bool
		rules     []contract.ExternalRule
		four, six bool
	}{
		{true, nil, true, true},
		{true, []contract.ExternalRule{rule(gateway4+"/32", false)}, false, true},
		{false, []contract.ExternalRule{rule(gateway6+"/128", true)}, false, true},
		{true, []contract.ExternalRule{rule(gateway4+"/32", true), rule("0.0.0.0/0", false), rule("::/0", false)}, true, false},
		{false, nil, false, false},
	} {
		p.doc.Mgmt.ExternalAccess, p.doc.Mgmt.External = tt.access, tt.rules
		p.apply()
		for to, want := range map[string]bool{gateway4: tt.four, gateway6: tt.six} {
			eventually(t, fmt.Sprintf("access %v and %v", tt.access, tt.rules), func() error {
				if got := ping(p.ns, to, absent) == nil; got != want {
					return fmt.Errorf("r1 reaches %s: %v", to, got)
				}
				return nil
			})
		}
	}
}
