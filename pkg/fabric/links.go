package fabric

import (
	"net/netip"
	"slices"

	"github.com/c9s-lab/c9s/internal/natural"
	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// memberLink is a link between two members.
type memberLink struct {
	*lab.Link
	owner string
	ends  [2]*Node
}

// mtu is the MTU of both ends in bytes. IGPs form no adjacency between different ones.
func (l memberLink) mtu() int { return l.ends[0].kind.limited(l.ends[1].kind.limited(l.MTU)) }

// links gives the links between members their addresses.
func (s *stage) links() {
	links := s.memberLinks()
	mtu := 0
	for _, l := range links {
		if mtu == 0 || l.mtu() < mtu {
			mtu = l.mtu()
		}
	}
	s.plan.tunnelMTU = mtu - vxlanOverhead
	if s.file.Underlay.Links.Value != Unnumbered {
		s.number(poolLink, s.file.Underlay.Links, links)
	}
	for _, l := range links {
		toCustomer := l.ends[0].Role == RoleCustomer || l.ends[1].Role == RoleCustomer
		for i, n := range l.ends {
			near, far := l.Endpoints[i], l.Endpoints[1-i]
			n.Links = append(n.Links, Link{
				Interface: near.Interface, Device: n.kind.spelled(near.Interface), Address: near.IPv4, MTU: l.mtu(), endpoint: near,
				Peer: far.Node, PeerInterface: far.Written(), PeerAddress: far.IPv4.Addr(), PeerASN: l.ends[1-i].ASN,
				Session: s.plan.Underlay == EBGP || toCustomer, toCustomer: toCustomer,
			})
		}
	}
	for _, n := range s.plan.Nodes {
		slices.SortFunc(n.Links, func(a, b Link) int { return natural.Compare(a.Interface, b.Interface) })
		if len(n.Links) == 0 {
			s.diags.Warnf(CodeNoMatch, s.file.Members.Match.Pos, "link it to another member, or exclude it from members", "node %q has no link to another member of the fabric", n.Name)
		}
	}
}

// memberLinks are the links between members, by their owners.
func (s *stage) memberLinks() []memberLink {
	var out []memberLink
	for _, l := range s.lab.Links {
		if len(l.Endpoints) != 2 {
			continue
		}
		a, b := s.nodes[l.Endpoints[0].Node], s.nodes[l.Endpoints[1].Node]
		if a == nil || b == nil || a == b {
			continue
		}
		out = append(out, memberLink{l, ownerOf(l), [2]*Node{a, b}})
	}
	sortLinks(out)
	return out
}

func sortLinks(links []memberLink) {
	slices.SortFunc(links, func(a, b memberLink) int { return natural.Compare(a.owner, b.owner) })
}

// ownerOf is the owner of a link's prefix: both ends.
func ownerOf(l *lab.Link) string {
	x, y := owned(l.Endpoints[0]), owned(l.Endpoints[1])
	if natural.Compare(y, x) < 0 {
		x, y = y, x
	}
	return x + " " + y
}

// number gives each link a prefix of a pool. The end that the topology writes first gets the
// lower address. Addresses of the topology stay; no other link gets their prefix.
func (s *stage) number(name string, from topology.Str, links []memberLink) {
	pool := s.prefixes[from.Value]
	var claims []alloc.Claim[netip.Prefix]
	open := map[string]memberLink{}
	for _, l := range links {
		a, b := l.Endpoints[0], l.Endpoints[1]
		switch {
		case a.IPv4.IsValid() != b.IPv4.IsValid():
			s.diags.Errorf(CodeAddress, l.Pos, "set the addresses of both ends, or of neither", "one end of a link of the fabric has an IPv4 address, and the other end has none")
		case a.IPv4.IsValid() && a.IPv4.Masked() != b.IPv4.Masked():
			s.diags.Errorf(CodeAddress, l.Pos, "set two addresses of one subnet", "the ends of a link of the fabric have the addresses %s and %s", a.IPv4, b.IPv4)
		case a.IPv4.IsValid():
			if _, ofPool := pool.Index(a.IPv4.Masked()); ofPool {
				claims = append(claims, alloc.Claim[netip.Prefix]{Owner: l.owner, Pos: l.Pos, Want: a.IPv4.Masked(), Has: true})
			}
		default:
			claims = append(claims, alloc.Claim[netip.Prefix]{Owner: l.owner, Pos: l.Pos})
			open[l.owner] = l
		}
	}
	for owner, p := range alloc.Take(s.ledger, name, pool, claims, alloc.PrefixForm, s.diags) {
		l, isOpen := open[owner]
		if !isOpen {
			continue
		}
		first := p.Addr()
		if p.Bits() == 30 { // the first address is that of the network
			first = first.Next()
		}
		ends := l.Endpoints
		ends[0].IPv4, ends[1].IPv4 = netip.PrefixFrom(first, p.Bits()), netip.PrefixFrom(first.Next(), p.Bits())
	}
}
