package fabric

import (
	"net/netip"
	"slices"

	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/diag"
)

var (
	// multicastSpace is all of IPv4 multicast. The ranges in it that no rendezvous point can serve
	// are those of single links (RFC 5771) and of single sources (RFC 4607).
	multicastSpace = netip.MustParsePrefix("224.0.0.0/4")
	linkGroups     = netip.MustParsePrefix("224.0.0.0/24")
	sourceGroups   = netip.MustParsePrefix("232.0.0.0/8")
)

// bum checks how broadcast frames are replicated.
func (l *loader) bum() {
	b := l.file.BUM
	if l.file.VTEPs == nil {
		l.wrong(b.Pos, "add vteps: {match: {groups: [leaf]}}, or remove bum", "replication of broadcast frames needs VTEPs")
	}
	if b.Pos.Line == 0 {
		return // it is no mapping, which has been reported
	}
	l.oneOf(b.Replication, b.Pos, "replication", Ingress, Multicast)
	if b.Replication.Value != Multicast {
		if b.Groups.Value != "" {
			l.wrong(b.Groups.Pos, "remove them, or use replication: multicast", "replication by %s has no multicast groups", b.Replication.Value)
		}
		if b.Rendezvous != nil {
			l.wrong(b.Rendezvous.Pos, "remove them, or use replication: multicast", "replication by %s has no rendezvous points", b.Replication.Value)
		}
		return
	}
	if l.file.Underlay.Links.Value == Unnumbered {
		l.wrong(b.Replication.Pos, "use a pool of prefixes for the links of the underlay", "PIM needs links with IPv4 addresses, and those of the underlay are unnumbered")
	}
	uses(l, b.Groups, b.Pos, "groups", "addresses", l.addresses)
	for _, text := range l.file.Pools[b.Groups.Value].Addresses {
		if p, err := netip.ParsePrefix(text.Value); err == nil && p.Addr().Is4() {
			l.groups(p, text.Pos)
		}
	}
	r := b.Rendezvous
	if r == nil {
		l.wrong(b.Pos, "add rendezvous: {match: {groups: [spine]}, addresses: POOL}", "replication by multicast needs rendezvous points")
		return
	}
	if !r.Match.Set() {
		l.wrong(r.Pos, "add match: {groups: [spine]}", "rendezvous has no match")
	}
	uses(l, r.Addresses, r.Pos, "addresses", "addresses", l.addresses)
	if r.Addresses.Value == "" {
		return
	}
	others := []struct{ what, pool string }{{"members", l.file.Members.Loopbacks.Value}, {"groups", b.Groups.Value}}
	if l.file.VTEPs != nil {
		others = append(others, struct{ what, pool string }{"vteps", l.file.VTEPs.Addresses.Value})
	}
	for _, other := range others {
		if r.Addresses.Value == other.pool {
			l.wrong(r.Addresses.Pos, "use a pool of its own", "rendezvous and %s use the same pool %q", other.what, other.pool)
		}
	}
}

// groups checks a range of multicast groups.
func (l *loader) groups(p netip.Prefix, pos diag.Pos) {
	switch {
	case p.Bits() < multicastSpace.Bits() || !multicastSpace.Contains(p.Addr()):
		l.wrong(pos, "use a range such as 239.1.0.0/24", "%s is not a range of multicast groups, which are in %s", p, multicastSpace)
	case p.Overlaps(linkGroups):
		l.wrong(pos, "use a range such as 239.1.0.0/24", "%s overlaps %s, which routers do not forward", p, linkGroups)
	case p.Overlaps(sourceGroups):
		l.wrong(pos, "use a range such as 239.1.0.0/24", "%s overlaps %s, which is for source-specific multicast and has no rendezvous points", p, sourceGroups)
	}
}

// multicast gives the services their groups, and the rendezvous points their address.
func (s *stage) multicast() {
	b := s.file.BUM
	if b == nil || b.Replication.Value != Multicast {
		return
	}
	s.plan.groups = s.ranges(b.Groups.Value)
	for _, n := range s.selected(b.Rendezvous.Match.Select(s.lab.Nodes, s.diags), b.Rendezvous.Match.Pos, "rendezvous") {
		if n.Role == RoleCustomer {
			s.diags.Errorf(CodeInvalid, b.Rendezvous.Match.Pos, "select members of the underlay", "node %q is a customer and a rendezvous point", n.Name)
		}
		if all := s.plan.rendezvous; len(all) > 0 && all[0].kind.anycast != n.kind.anycast && n.kind.has(FeatureMulticast) && all[0].kind.has(FeatureMulticast) {
			s.diags.Errorf(CodeUnsupported, b.Rendezvous.Match.Pos, "select nodes of one kind", "rendezvous points tell each other the sources by %s on node %q of kind %s, and by %s on node %q of kind %s",
				all[0].kind.anycast, all[0].Name, all[0].Kind, n.kind.anycast, n.Name, n.Kind)
		}
		n.Rendezvous = true
		s.plan.rendezvous = append(s.plan.rendezvous, n)
	}
	address := []alloc.Claim[netip.Addr]{{Owner: "rendezvous", Pos: b.Rendezvous.Addresses.Pos}}
	s.plan.Rendezvous = alloc.Take(s.ledger, poolRP, s.addresses[b.Rendezvous.Addresses.Value], address, alloc.AddressForm, s.diags)["rendezvous"]
	var claims []alloc.Claim[netip.Addr]
	for i := range s.file.Services {
		claims = append(claims, alloc.Claim[netip.Addr]{Owner: s.file.Services[i].Name.Value, Pos: b.Groups.Pos})
	}
	groups := alloc.Take(s.ledger, poolGroup, s.addresses[b.Groups.Value], claims, alloc.AddressForm, s.diags)
	for _, n := range s.plan.Nodes {
		for _, local := range n.Services {
			local.Group = groups[local.Name]
		}
		// The loopback, the interface that encapsulates registers, and the tunnels' on VTEPs.
		own := 2
		if n.IsVTEP() {
			own = 3
		}
		if links, limit := len(n.multicastLinks()), n.kind.multicastPorts-own; n.kind.multicastPorts > 0 && links > limit {
			s.diags.Errorf(CodeUnsupported, b.Replication.Pos, "use replication: ingress, or nodes with fewer links",
				"node %q has %d links, and kind %s routes multicast over %d at most", n.Name, links, n.Kind, limit)
		}
	}
}

// The following are for templates.

// Multicast reports whether the node takes part in PIM.
func (n *Node) Multicast() bool { return n.plan.Rendezvous.IsValid() && n.Role != RoleCustomer }

// RendezvousPoint is the address of the rendezvous points, MulticastGroups the ranges they serve.
func (n *Node) RendezvousPoint() netip.Addr     { return n.plan.Rendezvous }
func (n *Node) MulticastGroups() []netip.Prefix { return n.plan.groups }

// RendezvousPeers are the other rendezvous points, for one of them.
func (n *Node) RendezvousPeers() []*Node {
	if !n.Rendezvous {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.plan.rendezvous), func(o *Node) bool { return o == n })
}

// SharesRendezvousASN reports whether the node is a rendezvous point that reaches another one of its
// AS through a different AS.
func (n *Node) SharesRendezvousASN() bool {
	return n.Underlay() == EBGP && slices.ContainsFunc(n.RendezvousPeers(), func(o *Node) bool { return o.ASN == n.ASN })
}

// MulticastLinks are the links that speak PIM, and the ports that are configured in advance.
func (n *Node) MulticastLinks() []Link {
	if !n.Multicast() {
		return nil
	}
	return n.advance.withPorts(n.multicastLinks())
}

func (n *Node) multicastLinks() []Link {
	return slices.DeleteFunc(slices.Clone(n.Links), func(l Link) bool { return l.toCustomer })
}

// IsMulticastLink reports whether a link speaks PIM.
func (n *Node) IsMulticastLink(l Link) bool { return n.Multicast() && !l.toCustomer }
