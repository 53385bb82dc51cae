package fabric

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/c9s-lab/c9s/internal/natural"
	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// services adds the services to the VTEPs, and gives the hosts addresses.
func (s *stage) services() {
	for i := range s.file.Services {
		s.service(&s.file.Services[i], s.gateways[i])
	}
}

func (s *stage) service(spec *Service, gateway netip.Prefix) {
	match := &s.file.VTEPs.Match
	if spec.Match.Set() {
		match = &spec.Match
	}
	vteps, pos := match.Select(s.lab.Nodes, s.diags), match.Pos
	hosts := map[string]*lab.Node{}
	if spec.Hosts.Set() {
		for _, n := range spec.Hosts.Select(s.lab.Nodes, s.diags) {
			hosts[n.Name] = n
		}
	}
	linked := false
	var ends []hostEnd
	for _, n := range s.selected(vteps, pos, fmt.Sprintf("service %q", spec.Name.Value)) {
		if !n.IsVTEP() {
			s.diags.Errorf(CodeNoMatch, pos, "select VTEPs only", "service %q matches node %q, which is no VTEP", spec.Name.Value, n.Name)
			continue
		}
		local := &LocalService{Name: spec.Name.Value, VLAN: spec.VLAN.Value, VNI: spec.VNI.Value, Gateway: gateway, spec: spec}
		if gateway.IsValid() {
			local.GatewayMAC = s.mac
		}
		for _, e := range n.node.Endpoints {
			host, ok := s.hostEnd(e, hosts)
			linked = linked || ok
			if ok && s.free(fmt.Sprintf("service %q", spec.Name.Value), spec.Hosts.Pos, e) {
				port := Port{Interface: e.Interface, Device: n.kind.spelled(e.Interface), Peer: host.node.Name, endpoint: e}
				if h := s.multihomed[host.node.Name]; h != nil {
					s.join(h, n, local, port)
				} else {
					local.Ports = append(local.Ports, port)
				}
				ends = append(ends, host)
			}
		}
		byName := func(a, b Port) int { return natural.Compare(a.Interface, b.Interface) }
		slices.SortFunc(local.Ports, byName)
		for _, segment := range local.Segments {
			slices.SortFunc(segment.Ports, byName)
		}
		slices.SortFunc(local.Segments, func(a, b *Segment) int { return natural.Compare(a.Host, b.Host) })
		n.Services = append(n.Services, local)
	}
	if spec.Hosts.Set() && !linked {
		s.diags.Warnf(CodeNoMatch, spec.Hosts.Pos, "check its match", "hosts of service %q matches no node that is linked to a VTEP of the service", spec.Name.Value)
	}
	attached := s.attachments(ends)
	if gateway.IsValid() {
		s.addressHosts(spec, gateway, attached)
	}
	for _, a := range attached {
		if a.bundled {
			s.bundle(a.ends)
		}
	}
}

// attachment is how a host is in a VLAN: by one interface, or by the bundle of several.
type attachment struct {
	ends    []hostEnd
	bundled bool
}

// attachments are those of hosts in the order of their interfaces. All ends of a multihomed host are
// one.
func (s *stage) attachments(ends []hostEnd) []attachment {
	slices.SortFunc(ends, func(a, b hostEnd) int { return natural.Compare(owned(a.Endpoint), owned(b.Endpoint)) })
	var out []attachment
	for _, h := range ends {
		bundled := s.multihomed[h.node.Name] != nil
		if last := len(out) - 1; bundled && last >= 0 && out[last].ends[0].node == h.node {
			out[last].ends = append(out[last].ends, h)
			continue
		}
		out = append(out, attachment{[]hostEnd{h}, bundled})
	}
	return out
}

// holder is the end that holds the address: the one to which the topology gives one, or the first.
func (a attachment) holder() hostEnd {
	return a.ends[max(0, slices.IndexFunc(a.ends, func(h hostEnd) bool { return h.IPv4.IsValid() }))]
}

// device is the name of the interface of the host that has the address.
func (a attachment) device() string {
	if a.bundled {
		return bond
	}
	return a.ends[0].Interface
}

// hostEnd is the interface of a host in a VLAN.
type hostEnd struct {
	*lab.Endpoint
	node *lab.Node
}

// hostEnd returns the far end of a VTEP's port if it is that of a host.
func (s *stage) hostEnd(e *lab.Endpoint, hosts map[string]*lab.Node) (hostEnd, bool) {
	if e.Link < 0 {
		return hostEnd{}, false
	}
	far := s.lab.Links[e.Link].Far(e)
	if far == nil {
		return hostEnd{}, false
	}
	host := hosts[far.Node]
	return hostEnd{far, host}, host != nil && s.nodes[far.Node] == nil
}

// free reports whether neither another service nor access has the port.
func (s *stage) free(what string, pos diag.Pos, e *lab.Endpoint) bool {
	if other, used := s.used[e]; used {
		s.diags.Errorf(CodeTwoServices, pos, "select the node in one of them only", "%s and %s both have port %s of node %q", other, what, e.Written(), e.Node)
		return false
	}
	s.used[e] = what
	return true
}

// addressHosts gives hosts addresses of the service's subnet, unless the topology does, and
// routes by the gateway.
func (s *stage) addressHosts(spec *Service, gateway netip.Prefix, hosts []attachment) {
	pool := alloc.Addresses(fmt.Sprintf("host addresses of service %q", spec.Name.Value), gateway.Masked(), netip.Prefix{}, gateway.Addr())
	pool.Order, pool.Larger = alloc.Lowest, "use a larger subnet"
	ends := map[string]hostEnd{}
	var claims []alloc.Claim[netip.Addr]
	for _, a := range hosts {
		h := a.holder()
		if h.node.RootNamespace {
			continue
		}
		owner := owned(h.Endpoint)
		ends[owner] = h
		claims = append(claims, alloc.Claim[netip.Addr]{Owner: owner, Want: h.IPv4.Addr(), Has: h.IPv4.IsValid(), Pos: h.Pos})
	}
	for owner, a := range alloc.Take(s.ledger, poolHost+spec.Name.Value, pool, claims, alloc.AddressForm, s.diags) {
		ends[owner].IPv4 = netip.PrefixFrom(a, gateway.Bits())
	}
	for _, a := range hosts {
		a.holder().route(spec.Routes, gateway.Addr(), a.device())
	}
}

// route adds routes by a gateway to a Linux host.
func (h hostEnd) route(prefixes []topology.Str, gateway netip.Addr, dev string) {
	if h.node.Kind != "linux" || h.node.RootNamespace {
		return
	}
	var routes []lab.Exec
	for _, p := range prefixes {
		routes = append(routes, command([]string{"ip", "route", "replace", p.Value, "via", gateway.String(), "dev", dev}))
	}
	h.node.Exec = slices.Concat(routes, h.node.Exec)
}
