package fabric

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/c9s-lab/c9s/internal/natural"
)

// MaxPorts is the largest value of underlay.ports.
const MaxPorts = 1024

// advance is what a member between others is configured for in advance.
type advance struct {
	ports int
	// links are the ranges of link addresses, nil for unnumbered links; loopbacks those of
	// router ids.
	links, loopbacks []netip.Prefix
	// transit are the members that are configured in advance.
	transit map[string]bool
}

// ports configures members between others in advance: their configurations do not depend on
// how many neighbours they have. A session between two of them is written at both ends, since
// each would wait for the other one to open it.
func (s *stage) ports() {
	if !s.file.Underlay.Ports.Set {
		return
	}
	a := &advance{ports: s.file.Underlay.Ports.Value, loopbacks: s.ranges(s.file.Members.Loopbacks.Value), transit: map[string]bool{}}
	if links := s.file.Underlay.Links.Value; links != Unnumbered {
		a.links = s.ranges(links)
	}
	for _, n := range s.plan.Nodes {
		toCustomer := slices.ContainsFunc(n.Links, func(l Link) bool { return s.nodes[l.Peer].Role == RoleCustomer })
		if n.Role != RoleVTEP && n.Role != RoleCustomer && len(n.Access) == 0 && !toCustomer {
			n.advance = a
			a.transit[n.Name] = true
			if n.node.LinkApplyMode == "" {
				n.node.LinkApplyMode = "live" // FRR takes new interfaces while it runs
			}
		}
	}
}

// ranges are the prefixes of a pool.
func (s *stage) ranges(pool string) []netip.Prefix {
	p := s.file.Pools[pool]
	var out []netip.Prefix
	for _, text := range slices.Concat(p.Addresses, p.Prefixes) {
		if prefix, err := netip.ParsePrefix(text.Value); err == nil {
			out = append(out, prefix)
		}
	}
	return out
}

// withPorts adds the ports without a link to links. Descriptions would change with a new link.
func (a *advance) withPorts(links []Link) []Link {
	if a == nil {
		return links
	}
	var out []Link
	used := map[string]bool{}
	for _, l := range links {
		l.Peer = ""
		out, used[l.Interface] = append(out, l), true
	}
	for i := range a.ports {
		if name := fmt.Sprintf("eth%d", i+1); !used[name] {
			out = append(out, Link{Interface: name, Device: name})
		}
	}
	slices.SortFunc(out, func(a, b Link) int { return natural.Compare(a.Interface, b.Interface) })
	return out
}

// opened are the links whose session this node opens by its neighbour's address: those to
// members that do not open it, and those with addresses of the topology that are in no range.
func (a *advance) opened(links []Link) []Link {
	if a == nil {
		return links
	}
	return slices.DeleteFunc(slices.Clone(links), func(l Link) bool {
		heard := slices.ContainsFunc(a.links, func(p netip.Prefix) bool { return p.Contains(l.PeerAddress) })
		return heard && !a.transit[l.Peer]
	})
}

// Neighbours are the neighbours in iBGP that the configuration names.
func (n *Node) Neighbours() []Peer {
	if n.advance == nil {
		return n.Peers
	}
	return slices.DeleteFunc(slices.Clone(n.Peers), func(p Peer) bool { return p.Client && !n.advance.transit[p.Name] })
}

// Listens are the ranges of the neighbours that open their eBGP sessions to this node.
func (n *Node) Listens() []netip.Prefix {
	if n.advance == nil || n.Underlay() != EBGP {
		return nil
	}
	return n.advance.links
}

// Clients are the ranges of the clients of a route reflector, which open their sessions to it.
func (n *Node) Clients() []netip.Prefix {
	if n.advance == nil || !n.IsReflector() {
		return nil
	}
	return n.advance.loopbacks
}
