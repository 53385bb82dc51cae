package mgmt

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/link"
)

// The routing tables of the Pod's own; the device has main and all others.
const (
	// TableUnderlay leads to the cluster.
	TableUnderlay = 14800
	// TableMgmt leads to the management addresses: the node's own by the leg,
	// others by the mesh.
	TableMgmt = 14801
)

// Mark is on packets of the sidecar's own sockets, and is looked up in
// TableUnderlay.
const Mark uint32 = 0x0c950001

// tableLocal is where the kernel has the namespace's own addresses.
const tableLocal = unix.RT_TABLE_LOCAL

// The rules in their order. Those before "local" are why that one, which the
// kernel puts at 0, is moved: traffic for the management address must pass the
// leg and eth0 even where eth0 is in this namespace, so that the device sees it
// on eth0, and its connections are the device's and not the router's.
const (
	prefUnderlayIn = 10 + iota
	prefMeshIn
	prefLegMgmt
	prefLegLocal
	prefLegOut
	prefLegEnd
	prefRouterSelf
	prefGateway
	prefPodToMgmt
	prefMark
	prefTunnel
	prefPod
	prefLocal = 100
	// prefLate is after main and default: for what the router itself sends to the
	// device when that has eth0 elsewhere.
	prefLate = 33000
)

// unreachable is FR_ACT_UNREACHABLE (linux/fib_rules.h).
const unreachable = 7

// rules are the wanted rules of one family, without the moved "local".
func (m *Router) rules(family int) []netlink.Rule {
	var rules []netlink.Rule
	add := func(pref, table int, change func(*netlink.Rule)) {
		r := netlink.NewRule()
		r.Family, r.Priority, r.Table = family, pref, table
		change(r)
		rules = append(rules, *r)
	}
	iif := func(name string) func(*netlink.Rule) { return func(r *netlink.Rule) { r.IifName = name } }
	if n, ok := m.network(family); ok {
		subnet := link.IPNet(n.device.Masked())
		add(prefUnderlayIn, TableMgmt, iif(UnderlayName))
		add(prefMeshIn, TableMgmt, iif(MeshName))
		add(prefLegMgmt, TableMgmt, iif(LegName))
		add(prefLegLocal, tableLocal, iif(LegName))
		add(prefLegOut, TableUnderlay, iif(LegName))
		add(prefLegEnd, 0, func(r *netlink.Rule) { r.IifName, r.Type = LegName, unreachable })
		add(prefRouterSelf, TableMgmt, func(r *netlink.Rule) { r.Src, r.IifName = single(n.self()), "lo" })
		if n.gatewayLocal() {
			// For the device the gateway is beyond eth0, by its own connected
			// route, although it is an address of this namespace.
			add(prefGateway, unix.RT_TABLE_MAIN, func(r *netlink.Rule) {
				r.Dst, r.IifName, r.SuppressPrefixlen = single(n.gateway), "lo", 0
			})
		}
		for _, a := range m.pod {
			if isFamily(a, family) {
				add(prefPodToMgmt, tableLocal, func(r *netlink.Rule) { r.Src, r.Dst = single(a), subnet })
			}
		}
		add(prefLate, TableMgmt, func(r *netlink.Rule) { r.Dst = subnet })
	}
	add(prefMark, TableUnderlay, func(r *netlink.Rule) { r.Mark = Mark })
	// The fabric's VXLAN devices have neither mark nor source address.
	add(prefTunnel, TableUnderlay, func(r *netlink.Rule) {
		r.IifName, r.IPProto, r.Dport = "lo", unix.IPPROTO_UDP, netlink.NewRulePortRange(contract.VXLANPort, contract.VXLANPort)
	})
	for _, a := range m.pod {
		if isFamily(a, family) {
			add(prefPod, TableUnderlay, func(r *netlink.Rule) { r.Src = single(a) })
		}
	}
	return rules
}

// ensureRules adds what is missing and removes what is no longer wanted among the
// preferences that are the sidecar's.
func (m *Router) ensureRules(family int) error {
	have, err := m.nl.RuleList(family)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("list rules: %w", err)
	}
	want := m.rules(family)
	for _, w := range want {
		found := false
		for _, h := range have {
			found = found || sameRule(&h, &w)
		}
		if !found {
			if err := m.nl.RuleAdd(&w); err != nil && !errors.Is(err, unix.EEXIST) {
				return fmt.Errorf("rule %d: %w", w.Priority, err)
			}
		}
	}
	for _, h := range have {
		if !(h.Priority >= prefUnderlayIn && h.Priority <= prefPod) && h.Priority != prefLate {
			continue
		}
		wanted := false
		for _, w := range want {
			wanted = wanted || sameRule(&h, &w)
		}
		if !wanted {
			h.Family = family
			if err := m.nl.RuleDel(&h); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("remove rule %d: %w", h.Priority, err)
			}
		}
	}
	return m.moveLocal(family, have)
}

// moveLocal has "local" after the sidecar's rules. A device may have moved it
// farther itself, as those with VRFs do; that stays.
func (m *Router) moveLocal(family int, have []netlink.Rule) error {
	first, elsewhere := false, false
	for _, h := range have {
		if h.Table == tableLocal && h.Src == nil && h.Dst == nil && h.IifName == "" && h.Mark == 0 {
			if h.Priority == 0 {
				first = true
			} else {
				elsewhere = true
			}
		}
	}
	local := netlink.NewRule()
	local.Family, local.Table, local.Priority = family, tableLocal, prefLocal
	if !elsewhere {
		if err := m.nl.RuleAdd(local); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("move the rule for local addresses: %w", err)
		}
	}
	if first {
		local.Priority = 0
		if err := m.nl.RuleDel(local); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("move the rule for local addresses: %w", err)
		}
	}
	return nil
}

func sameRule(a, b *netlink.Rule) bool {
	return a.Priority == b.Priority && a.Table == b.Table && a.IifName == b.IifName && a.Mark == b.Mark &&
		a.SuppressPrefixlen == b.SuppressPrefixlen && a.IPProto == b.IPProto && samePorts(a.Dport, b.Dport) &&
		sameNet(a.Src, b.Src) && sameNet(a.Dst, b.Dst)
}

func samePorts(a, b *netlink.RulePortRange) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sameNet(a, b *net.IPNet) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.IP.Equal(b.IP) && a.Mask.String() == b.Mask.String()
}

func single(a netip.Addr) *net.IPNet { return link.IPNet(netip.PrefixFrom(a, a.BitLen())) }

func isFamily(a netip.Addr, family int) bool { return a.Is4() == (family == netlink.FAMILY_V4) }

// MarkSocket is a net.Dialer's Control: the socket's packets take TableUnderlay,
// whatever the device has in its own.
var MarkSocket = wire.MarkSocket(Mark)
