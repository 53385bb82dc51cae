package fabric

import (
	"slices"

	"github.com/c9s-lab/c9s/internal/natural"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// access makes the routed links to hosts.
func (s *stage) access() {
	a := s.file.Access
	if a == nil {
		return
	}
	hosts := map[string]*lab.Node{}
	for _, n := range a.Hosts.Select(s.lab.Nodes, s.diags) {
		hosts[n.Name] = n
	}
	type port struct {
		*lab.Endpoint
		router *Node
		host   hostEnd
	}
	linked := false
	var ports []port
	var links []memberLink
	for _, n := range s.plan.Nodes {
		for _, e := range n.node.Endpoints {
			host, ok := s.hostEnd(e, hosts)
			linked = linked || ok
			if ok && s.free("access", a.Hosts.Pos, e) {
				l := s.lab.Links[e.Link]
				ports = append(ports, port{e, n, host})
				links = append(links, memberLink{Link: l, owner: ownerOf(l)})
			}
		}
	}
	if !linked {
		s.diags.Warnf(CodeNoMatch, a.Hosts.Pos, "check its match", "hosts of access matches no node that is linked to a member of the fabric")
	}
	sortLinks(links)
	s.number(poolAccess, a.Links, links)
	for _, p := range ports {
		p.router.Access = append(p.router.Access, AccessPort{Interface: p.Interface, Device: p.router.kind.spelled(p.Interface), Address: p.IPv4, Peer: p.host.node.Name,
			MTU: p.router.kind.limited(s.lab.Links[p.Link].MTU), endpoint: p.Endpoint})
		p.host.route(a.Routes, p.IPv4.Addr(), p.host.Interface)
	}
	for _, n := range s.plan.Nodes {
		slices.SortFunc(n.Access, func(a, b AccessPort) int { return natural.Compare(a.Interface, b.Interface) })
	}
}
