// Package nft keeps the sidecar's own nftables table, inet c9s, and the accept
// rules by which the Pod's transports pass a device's firewall.
package nft

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// TableName is the sidecar's table, of family inet.
const TableName = "c9s"

// Zone is the conntrack zone of what passes the router between the device's eth0
// and the Pod. The device may be in the same namespace, so a packet meets
// conntrack twice: as the device's, in zone 0, and as the router's, in this one.
const Zone = 14800

// Config is what the table is made from.
type Config struct {
	// Underlay, Leg and Mesh are the names of the Pod's cluster interface, the
	// router's leg of eth0 and the management VXLAN.
	Underlay, Leg, Mesh string
	// PodAddrs are the Pod's addresses, at most one a family.
	PodAddrs []netip.Addr
	// Mgmt are the management networks, at most one a family.
	Mgmt []Network
	// Ports are forwarded from the Pod addresses to the management address.
	Ports []contract.Port
	// ExternalAccess lets the device reach beyond the lab.
	ExternalAccess bool
	// UnderlayMTU and MeshMTU are in bytes.
	UnderlayMTU, MeshMTU int
	// Mark is on packets that must be routed by the Pod's own table.
	Mark uint32
	// Tunnels are UDP ports on the underlay that are the sidecar's.
	Tunnels []uint16
}

// Network is one family of the management network.
type Network struct {
	// Device is the node's address with the subnet's length.
	Device  netip.Prefix
	Gateway netip.Addr
	// Ping is an address of the Pod that answers for a gateway which the Pod
	// does not have as an address; not set where it has.
	Ping netip.Addr
}

// Table is the table in the namespace of the caller.
type Table struct{}

// markerPrefix begins the name of an empty chain whose rest is the digest of the
// configuration: by it a table is known to be right without comparing rules.
const markerPrefix = "of-"

// Apply makes the table agree with c. One that agrees is not touched; another is
// replaced in one transaction, so no packet sees half of it. It tells whether it
// changed something.
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
	if found && bases == len(want) {
		return false, nil
	}
	t := &nftables.Table{Name: TableName, Family: nftables.TableFamilyINet}
	conn.AddTable(t)
	conn.DelTable(t)
	conn.AddTable(t)
	conn.AddChain(&nftables.Chain{Name: marker, Table: t})
	for _, ch := range want {
		chain := conn.AddChain(&nftables.Chain{Name: ch.name, Table: t, Type: ch.kind, Hooknum: ch.hook, Priority: nftables.ChainPriorityRef(ch.priority)})
		for _, r := range ch.rules {
			conn.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: r})
		}
	}
	if err := conn.Flush(); err != nil {
		return false, fmt.Errorf("write nftables table %s: %w", TableName, err)
	}
	return true, nil
}

// layout counts the versions of what chains makes of a Config: it goes up with
// every change there, so that a newer sidecar replaces an older one's table.
const layout = 1

func (c Config) marker() (string, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(data, "%d", layout))
	return markerPrefix + hex.EncodeToString(sum[:8]), nil
}

type chain struct {
	name     string
	kind     nftables.ChainType
	hook     *nftables.ChainHook
	priority nftables.ChainPriority
	rules    []rule
}

// chains is the table. Its NAT is ten ahead of where devices have theirs: the
// first that decides about a connection wins.
func (c Config) chains() []chain {
	return []chain{
		{"raw-prerouting", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, -310, c.rawPrerouting()},
		{"raw-output", nftables.ChainTypeFilter, nftables.ChainHookOutput, -310, c.rawOutput()},
		{"dstnat", nftables.ChainTypeNAT, nftables.ChainHookPrerouting, -110, c.dstnat()},
		{"mark", nftables.ChainTypeFilter, nftables.ChainHookPrerouting, -90, c.mark()},
		{"forward", nftables.ChainTypeFilter, nftables.ChainHookForward, -10, c.forward()},
		{"unmark", nftables.ChainTypeFilter, nftables.ChainHookPostrouting, -160, c.unmark()},
		{"srcnat", nftables.ChainTypeNAT, nftables.ChainHookPostrouting, 90, c.srcnat()},
	}
}

func (c Config) rawPrerouting() []rule {
	var rules []rule
	for _, p := range c.Tunnels {
		rules = append(rules, exprs(iif(c.Underlay), dport(unix.IPPROTO_UDP, p), notrack(), ret()))
	}
	rules = append(rules, exprs(iif(c.Underlay), setZone(Zone)))
	if c.Leg == "" {
		return rules
	}
	// What passes between Pods of the lab is not translated, and so not tracked.
	rules = append(rules, exprs(iif(c.Mesh), notrack(), ret()))
	for _, n := range c.Mgmt {
		rules = append(rules, exprs(iif(c.Leg), not(daddr(host(n.Gateway))), daddr(n.Device), notrack(), ret()))
	}
	return append(rules, exprs(iif(c.Leg), setZone(Zone)))
}

func (c Config) rawOutput() []rule {
	var rules []rule
	for _, p := range c.Tunnels {
		rules = append(rules, exprs(oif(c.Underlay), dport(unix.IPPROTO_UDP, p), notrack(), ret()))
	}
	rules = append(rules, exprs(oif(c.Underlay), setZone(Zone)))
	if c.Leg != "" {
		rules = append(rules, exprs(oif(c.Leg), setZone(Zone)))
	}
	return rules
}

func (c Config) dstnat() []rule {
	var rules []rule
	for _, n := range c.Mgmt {
		if n.Ping.IsValid() {
			rules = append(rules, exprs(iif(c.Leg), daddr(host(n.Gateway)), dnat(n.Ping)))
		}
		for _, pod := range c.PodAddrs {
			if pod.Is4() != n.Gateway.Is4() {
				continue
			}
			for _, p := range c.Ports {
				if proto := protocol(p.Protocol); proto != 0 {
					rules = append(rules, exprs(iif(c.Underlay), daddr(host(pod)), dport(proto, uint16(p.Container)), dnat(n.Device.Addr())))
				}
			}
		}
	}
	return rules
}

// mark lets a strict rp_filter look in the Pod's table for the way back of what
// was translated and goes to the device. IPv4 alone has that filter. Nothing else
// is marked: the mark would stay on what a tunnel carries.
func (c Config) mark() []rule {
	var rules []rule
	for _, a := range c.PodAddrs {
		if a.Is4() && c.Leg != "" {
			rules = append(rules, exprs(iif(c.Underlay), family(a), ctBit(expr.CtKeySTATUS, ctStatusSNAT|ctStatusDNAT), setMark(c.Mark)))
		}
	}
	return rules
}

// unmark is why the device never sees the mark.
func (c Config) unmark() []rule {
	if c.Leg == "" {
		return nil
	}
	return []rule{exprs(oif(c.Leg), mark(c.Mark), setMark(0))}
}

func protocol(name string) byte {
	switch strings.ToLower(name) {
	case "", "tcp":
		return unix.IPPROTO_TCP
	case "udp":
		return unix.IPPROTO_UDP
	case "sctp":
		return unix.IPPROTO_SCTP
	}
	return 0
}

// forward confines the router: the underlay and the mesh lead to the device's
// eth0 and nowhere else, so that no Pod becomes a way between networks.
func (c Config) forward() []rule {
	rules := []rule{}
	leg := rule{}
	if c.Leg != "" {
		leg = not(oif(c.Leg))
	}
	rules = append(rules, exprs(iif(c.Underlay), leg, drop()))
	if c.Leg == "" {
		return append(rules, exprs(oif(c.Underlay), drop()))
	}
	rules = append(rules, exprs(iif(c.Mesh), leg, drop()), exprs(oif(c.Underlay), not(iif(c.Leg)), drop()))
	if !c.ExternalAccess {
		// Answers to those who came in by a declared port still go out.
		rules = append(rules, exprs(iif(c.Leg), oif(c.Underlay), ctBit(expr.CtKeySTATE, expr.CtStateBitNEW|expr.CtStateBitINVALID|expr.CtStateBitUNTRACKED), prohibited()))
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

// IPS_SRC_NAT and IPS_DST_NAT (linux/netfilter/nf_conntrack_common.h).
const (
	ctStatusSNAT = 1 << 4
	ctStatusDNAT = 1 << 5
)

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
