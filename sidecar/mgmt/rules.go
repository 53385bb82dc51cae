package mgmt

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/link"
)

// TableMgmt routes the management addresses: the node's own to the leg, others to the mesh.
// It is separate from the main table, which is the cluster's, since a lab may use the
// cluster's addresses.
const TableMgmt = 14801

// The rules in their order, before that of the main table.
const (
	prefUnderlayIn = 10 + iota
	prefMeshIn
	prefLegIn
	prefSelf
	prefEnd
)

// rules returns the desired rules of one family.
func (m *Router) rules(family int) []netlink.Rule {
	n, ok := m.network(family)
	if !ok {
		return nil
	}
	var rules []netlink.Rule
	add := func(pref int, change func(*netlink.Rule)) {
		r := netlink.NewRule()
		r.Family, r.Priority, r.Table = family, pref, TableMgmt
		change(r)
		rules = append(rules, *r)
	}
	for pref, name := range map[int]string{prefUnderlayIn: UnderlayName, prefMeshIn: MeshName, prefLegIn: LegName} {
		add(pref, func(r *netlink.Rule) { r.IifName = name })
	}
	add(prefSelf, func(r *netlink.Rule) { r.Src, r.IifName = single(n.gateway), "lo" })
	return rules
}

// ensureRules adds missing rules and deletes unwanted ones with the router's priorities.
func (m *Router) ensureRules(family int) error {
	have, err := m.nl.RuleList(family)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("list rules: %w", err)
	}
	want := m.rules(family)
	for _, w := range want {
		if contains(have, w) {
			continue
		}
		if err := m.nl.RuleAdd(&w); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("rule %d: %w", w.Priority, err)
		}
	}
	for _, h := range have {
		if h.Priority < prefUnderlayIn || h.Priority >= prefEnd || contains(want, h) {
			continue
		}
		h.Family = family
		if err := m.nl.RuleDel(&h); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove rule %d: %w", h.Priority, err)
		}
	}
	return nil
}

func contains(all []netlink.Rule, w netlink.Rule) bool {
	for _, r := range all {
		if r.Priority == w.Priority && r.Table == w.Table && r.IifName == w.IifName && sameNet(r.Src, w.Src) {
			return true
		}
	}
	return false
}

func sameNet(a, b *net.IPNet) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.IP.Equal(b.IP) && a.Mask.String() == b.Mask.String()
}

func single(a netip.Addr) *net.IPNet { return link.IPNet(netip.PrefixFrom(a, a.BitLen())) }

func isFamily(a netip.Addr, family int) bool { return a.Is4() == (family == netlink.FAMILY_V4) }
