// Package nft keeps the firewall of the sidecar's network namespace: the nftables table
// inet c9s.
package nft

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// TableName is the sidecar's table, of family inet.
const TableName = "c9s"

// Config describes the table.
type Config struct {
	// Underlay, Leg and Mesh are the names of the Pod's cluster interface, the
	// router's leg of eth0 and the management VXLAN.
	Underlay, Leg, Mesh string
	// PodAddrs are the Pod's addresses, at most one per family.
	PodAddrs []netip.Addr
	// Mgmt are the management networks, at most one per family.
	Mgmt []Network
	// ExternalAccess lets the device reach beyond the lab.
	ExternalAccess bool
	// External has the prefixes for which ExternalAccess does not hold, the longest ones first.
	External []contract.ExternalRule
	// DenyTo are the management addresses to which the device may open no connections,
	// DenyFrom those from which it gets none. Both are sorted.
	DenyTo, DenyFrom []netip.Addr
	// UnderlayMTU and MeshMTU are in bytes.
	UnderlayMTU, MeshMTU int
	// Tunnels are UDP ports of tunnels to outside the lab.
	Tunnels []uint16
	// Resolver is the UDP and TCP port of the device's resolver on the gateway's
	// addresses.
	Resolver uint16
	// UDP and TCP are the sidecar's ports on the Pod address. All others are the
	// device's.
	UDP, TCP []uint16
}

// Network is one family of the management network.
type Network struct {
	// Device is the node's address with the subnet's length.
	Device  netip.Prefix
	Gateway netip.Addr
}

// Table is the table in the namespace of the caller.
type Table struct{}

// markerPrefix begins the name of an empty chain. The rest of the name is the digest of the
// configuration, so that no rules need to be compared.
const markerPrefix = "of-"

// Apply brings the table to the state that c describes, and reports whether it changed
// something. It replaces the table in one transaction, so that no packet sees half of it.
func (Table) Apply(c Config) (bool, error) {
	conn, err := nftables.New()
	if err != nil {
		return false, fmt.Errorf("nftables: %w", err)
	}
	marker, err := c.marker()
	if err != nil {
		return false, err
	}
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, fmt.Errorf("list nftables chains: %w", err)
	}
	bases := 0
	found := false
	for _, ch := range chains {
		if ch.Table.Name != TableName {
			continue
		}
		found = found || ch.Name == marker
		if ch.Hooknum != nil {
			bases++
		}
	}
	want := c.chains()
	if found && bases == len(want)-len(c.jumped()) {
		return false, nil
	}
	t := &nftables.Table{Name: TableName, Family: nftables.TableFamilyINet}
	conn.AddTable(t)
	conn.DelTable(t)
	conn.AddTable(t)
	conn.AddChain(&nftables.Chain{Name: marker, Table: t})
	for _, s := range c.sets() {
		if err := s.add(conn, t); err != nil {
			return false, err
		}
	}
	for _, ch := range want {
		chain := &nftables.Chain{Name: ch.name, Table: t}
		if ch.hook != nil {
			chain.Type, chain.Hooknum, chain.Priority = ch.kind, ch.hook, nftables.ChainPriorityRef(ch.priority)
		}
		conn.AddChain(chain)
		for _, r := range ch.rules {
			conn.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: r})
		}
	}
	if err := conn.Flush(); err != nil {
		return false, fmt.Errorf("write nftables table %s: %w", TableName, err)
	}
	return true, nil
}

// layout is the version of chains. Increase it with each change there, so that a newer
// sidecar replaces the table of an older one.
const layout = 4

func (c Config) marker() (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(data, "%d", layout))
	return markerPrefix + hex.EncodeToString(sum[:8]), nil
}

// chain is a chain of the table. One without a hook is jumped to.
type chain struct {
	name     string
	kind     nftables.ChainType
	hook     *nftables.ChainHook
	priority nftables.ChainPriority
	rules    []rule
}

// chains returns the table. The first chain drops everything from interfaces that are not the
// router's: the legs of the lab's links are in the same namespace, and devices must not reach
// it by them.
func (c Config) chains() []chain {
	return append(c.jumped(), []chain{
		{"guard", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, -350, c.guard()},
		{"raw-prerouting", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, -310, c.rawPrerouting()},
		{"raw-output", nftables.ChainTypeFilter, nftables.ChainHookOutput, -310, c.rawOutput()},
		{"dstnat", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, -110, c.dstnat()},
		{"input", nftables.ChainTypeFilter, nftables.ChainHookInput, -10, c.input()},
		{"forward", nftables.ChainTypeFilter, nftables.ChainHookForward, -10, c.forward()},
		{"srcnat", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, 90, c.srcnat()},
	}...)
}

// jumped returns the chains that others jump to.
func (c Config) jumped() []chain {
	if c.Leg == "" || len(c.External) == 0 {
		return nil
	}
	return []chain{{name: externalChain, rules: c.external()}}
}

const externalChain = "external"

// external decides about a new connection to outside the lab: the first rule that matches has
// the longest prefix.
func (c Config) external() []rule {
	var rules []rule
	for _, r := range c.External {
		verdict := prohibited()
		if r.Allow {
			verdict = ret()
		}
		rules = append(rules, exprs(daddr(r.Prefix), verdict))
	}
	if !c.ExternalAccess {
		rules = append(rules, prohibited())
	}
	return rules
}

func (c Config) guard() []rule {
	stranger := exprs(not(iif("lo")), not(iif(c.Underlay)))
	if c.Leg != "" {
		stranger = exprs(stranger, not(iif(c.Leg)), not(iif(c.Mesh)))
	}
	return []rule{exprs(stranger, drop())}
}

func (c Config) rawPrerouting() []rule {
	var rules []rule
	for _, p := range c.UDP {
		rules = append(rules, exprs(iif(c.Underlay), dport(unix.IPPROTO_UDP, p), notrack(), ret()))
	}
	if c.Leg == "" {
		return rules
	}
	// Between Pods that may not open connections in both directions, those of the other
	// direction must be known.
	for _, s := range c.sets() {
		rules = append(rules, exprs(iif(c.Mesh), among(s, false), ret()), exprs(iif(c.Leg), among(s, true), ret()))
	}
	// Other traffic between Pods of the lab is not translated, and therefore not tracked.
	rules = append(rules, exprs(iif(c.Mesh), notrack(), ret()))
	for _, n := range c.Mgmt {
		rules = append(rules, exprs(iif(c.Leg), not(daddr(host(n.Gateway))), daddr(n.Device), notrack(), ret()))
	}
	return rules
}

func (c Config) rawOutput() []rule {
	var rules []rule
	for _, p := range c.UDP {
		rules = append(rules, exprs(oif(c.Underlay), dport(unix.IPPROTO_UDP, p), notrack(), ret()))
	}
	return rules
}

// dstnat passes every port of the Pod address to the device, except the sidecar's.
func (c Config) dstnat() []rule {
	var rules []rule
	for _, n := range c.Mgmt {
		for _, pod := range c.PodAddrs {
			if pod.Is4() != n.Gateway.Is4() {
				continue
			}
			for _, proto := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP} {
				r := exprs(iif(c.Underlay), daddr(host(pod)), l4proto(proto))
				mine := c.own(proto)
				if proto == unix.IPPROTO_UDP {
					mine = slices.Concat(mine, c.Tunnels)
				}
				for _, p := range mine {
					r = exprs(r, not(port(p, true)))
				}
				rules = append(rules, exprs(r, dnat(n.Device.Addr())))
			}
		}
	}
	return rules
}

// own returns the sidecar's ports of a protocol.
func (c Config) own(proto byte) []uint16 {
	switch proto {
	case unix.IPPROTO_TCP:
		return c.TCP
	case unix.IPPROTO_UDP:
		return c.UDP
	}
	return nil
}

// input limits what reaches the sidecar's namespace. For the device, the gateway answers
// pings, resolves names and is a neighbour. Nothing is reachable from the mesh, and the
// gateway is not reachable from the cluster.
func (c Config) input() []rule {
	if c.Leg == "" {
		return nil
	}
	var rules []rule
	for _, n := range c.Mgmt {
		rules = append(rules, exprs(iif(c.Underlay), daddr(host(n.Gateway)), drop()))
		for _, proto := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
			rules = append(rules, exprs(iif(c.Leg), daddr(host(n.Gateway)), dport(proto, c.Resolver), ret()))
		}
	}
	rules = append(rules,
		exprs(iif(c.Leg), l4proto(unix.IPPROTO_ICMP), ret()),
		exprs(iif(c.Leg), l4proto(unix.IPPROTO_ICMPV6), ret()),
		exprs(iif(c.Leg), ctBit(expr.CtKeySTATE, expr.CtStateBitESTABLISHED), ret()),
		exprs(iif(c.Leg), refused()))
	// Neighbour solicitation and advertisement (RFC 4861, 4.3 and 4.4).
	for kind := byte(135); kind <= 136; kind++ {
		rules = append(rules, exprs(iif(c.Mesh), icmpv6(kind), ret()))
	}
	return append(rules, exprs(iif(c.Mesh), drop()))
}

// forward limits the router: the underlay and the mesh lead only to the device's eth0, so
// that no Pod connects other networks.
func (c Config) forward() []rule {
	if c.Leg == "" {
		return []rule{drop()}
	}
	rules := []rule{
		exprs(not(iif(c.Leg)), not(oif(c.Leg)), drop()),
		exprs(iif(c.Leg), not(oif(c.Underlay)), not(oif(c.Mesh)), drop()),
	}
	for _, s := range byFamily(denyTo, c.DenyTo) {
		rules = append(rules, exprs(iif(c.Leg), oif(c.Mesh), among(s, true), opening(), prohibited()))
	}
	for _, s := range byFamily(denyFrom, c.DenyFrom) {
		rules = append(rules, exprs(iif(c.Mesh), among(s, false), opening(), drop()))
	}
	out := exprs(iif(c.Leg), oif(c.Underlay))
	// The device's packets get the Pod's address only by translation. Sent by the device
	// itself, that address would make it look like the sidecar to other Pods.
	for _, pod := range c.PodAddrs {
		rules = append(rules, exprs(out, saddr(host(pod)), drop()))
	}
	for _, proto := range []byte{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		for _, p := range c.own(proto) {
			rules = append(rules, exprs(out, dport(proto, p), prohibited()))
		}
	}
	// Answers to incoming connections leave in any case.
	if len(c.External) > 0 {
		rules = append(rules, exprs(out, opening(), jump(externalChain)))
	} else if !c.ExternalAccess {
		rules = append(rules, exprs(out, opening(), prohibited()))
	}
	for _, n := range c.Mgmt {
		header := 40
		if n.Gateway.Is6() {
			header = 60
		}
		clamp := func(way rule, mtu int) rule {
			return exprs(way, family(n.Gateway), clampMSS(uint16(max(mtu-header, 536))))
		}
		rules = append(rules,
			clamp(iif(c.Underlay), c.UnderlayMTU), clamp(oif(c.Underlay), c.UnderlayMTU),
			clamp(iif(c.Mesh), c.MeshMTU), clamp(oif(c.Mesh), c.MeshMTU))
	}
	return rules
}

// IPS_DST_NAT (linux/netfilter/nf_conntrack_common.h).
const ctStatusDNAT = 1 << 5

func (c Config) srcnat() []rule {
	var rules []rule
	for _, pod := range c.PodAddrs {
		rules = append(rules, exprs(oif(c.Underlay), notSaddr(pod), snat(pod)))
	}
	for _, n := range c.Mgmt {
		rules = append(rules, exprs(oif(c.Leg), family(n.Gateway), ctBit(expr.CtKeySTATUS, ctStatusDNAT), snat(n.Gateway)))
	}
	return rules
}
