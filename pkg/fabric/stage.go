package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/natural"
	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// The pools of the fabric by their names in lab.Allocations.
const (
	poolLoopback = "fabric/loopback"
	poolVTEP     = "fabric/vtep"
	poolASN      = "fabric/asn"
	poolLink     = "fabric/link"
	poolAccess   = "fabric/access"
	poolCustomer = "fabric/customer"
	poolGroup    = "fabric/group"
	poolRP       = "fabric/rendezvous"
	poolSegment  = "fabric/segment"
	poolHost     = "fabric/host/" // and the name of the service
)

// vxlanOverhead is what VXLAN over IPv4 adds to a frame, less its Ethernet header: outer IPv4,
// UDP and VXLAN headers and the inner Ethernet header (RFC 7348).
const vxlanOverhead = 50

// Plan returns what Apply made, nil before.
func (f *Fabric) Plan() *Plan { return f.plan }

// stage is one run of Apply.
type stage struct {
	*Fabric
	lab    *lab.Lab
	ledger *alloc.Ledger
	diags  *diag.List
	nodes  map[string]*Node
	// used are the ports of services, by endpoint.
	used map[*lab.Endpoint]string
	// multihomed are the hosts of multihoming, by name.
	multihomed map[string]*multihomed
}

// Apply plans the fabric in a lab whose links and management addresses are settled: it sets the
// addresses of links and hosts, and the startup-configs of the members.
func (f *Fabric) Apply(l *lab.Lab, ledger *alloc.Ledger, diags *diag.List) {
	s := &stage{Fabric: f, lab: l, ledger: ledger, diags: diags, nodes: map[string]*Node{}, used: map[*lab.Endpoint]string{}, multihomed: map[string]*multihomed{}}
	f.plan = &Plan{Underlay: f.file.Underlay.Protocol.Value, lab: l}
	if f.file.Overlay != nil {
		f.plan.Overlay = f.file.Overlay.Protocol.Value
		f.plan.unicast = f.file.Customers != nil
		f.plan.evpn = f.file.VTEPs != nil || !f.plan.unicast
	}
	if !s.members() {
		return
	}
	s.vteps()
	s.reflectors()
	s.customers()
	s.asns()
	s.links()
	s.peers()
	s.segments()
	s.services()
	s.checkSegments()
	s.multicast()
	s.access()
	s.ports()
	s.checkPreferred()
	s.checkFeatures()
	if !diags.HasErrors() {
		s.configure()
	}
}

// Finish sets the MTU of Linux interfaces where the policy has not: frames of hosts must fit into
// tunnels, and both ends of a link have one MTU.
func (f *Fabric) Finish(l *lab.Lab) {
	if f.plan == nil {
		return
	}
	limit := func(link *lab.Link, e *lab.Endpoint, mtu int) {
		if e.MTU == 0 && link.MTU > mtu {
			e.MTU = mtu
		}
	}
	for _, n := range f.plan.Nodes {
		for _, s := range n.Services {
			for _, p := range s.allPorts() {
				link := l.Links[p.endpoint.Link]
				for _, e := range link.Endpoints {
					limit(link, e, f.plan.tunnelMTU)
				}
			}
		}
		for _, p := range n.Access {
			link := l.Links[p.endpoint.Link]
			limit(link, link.Far(p.endpoint), p.MTU)
		}
		for _, p := range n.Links {
			if n.kind.mtu == 0 {
				limit(l.Links[p.endpoint.Link], p.endpoint, p.MTU)
			}
		}
	}
}

// members finds the nodes of the fabric and gives them their router ids.
func (s *stage) members() bool {
	match := &s.file.Members.Match
	selected := match.Select(s.lab.Nodes, s.diags)
	if len(selected) == 0 {
		s.diags.Errorf(CodeNoMatch, match.Pos, "check its match", "members matches no node of the topology")
		return false
	}
	ok := true
	for _, ln := range selected {
		k := kindOf(ln)
		if k == nil {
			hint := "exclude it from members, or use one of the kinds " + strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
			if ln.Kind == "linux" {
				hint = "exclude it from members, or use an image whose name contains frr"
			}
			s.diags.Errorf(CodeKind, match.Pos, hint, "members matches node %q, and c9s has no fabric configuration for kind %s with image %s", ln.Name, ln.Kind, cmp.Or(ln.Image, "(none)"))
			ok = false
			continue
		}
		n := &Node{Name: ln.Name, Kind: ln.Kind, Role: RoleRouter, node: ln, kind: k, plan: s.plan, Links: []Link{}}
		s.nodes[ln.Name] = n
		s.plan.Nodes = append(s.plan.Nodes, n)
	}
	slices.SortFunc(s.plan.Nodes, func(a, b *Node) int { return natural.Compare(a.Name, b.Name) })
	claims := make([]alloc.Claim[netip.Addr], len(s.plan.Nodes))
	for i, n := range s.plan.Nodes {
		claims[i] = claim(n.Name, match.Pos, s.preferLoopback, s.file.Prefer[n.Name].Loopback.Pos)
	}
	for owner, a := range alloc.Take(s.ledger, poolLoopback, s.addresses[s.file.Members.Loopbacks.Value], claims, alloc.AddressForm, s.diags) {
		s.nodes[owner].RouterID = a
	}
	return ok
}

// claim asks for a value, the preferred one if there is one.
func claim[V comparable](owner string, pos diag.Pos, preferred map[string]V, preferredPos diag.Pos) alloc.Claim[V] {
	c := alloc.Claim[V]{Owner: owner, Pos: pos}
	if v, ok := preferred[owner]; ok {
		c.Want, c.Has, c.Pos = v, true, preferredPos
	}
	return c
}

func (s *stage) vteps() {
	v := s.file.VTEPs
	if v == nil {
		return
	}
	var claims []alloc.Claim[netip.Addr]
	for _, n := range s.selected(v.Match.Select(s.lab.Nodes, s.diags), v.Match.Pos, "vteps") {
		n.Role, n.VTEP = RoleVTEP, n.RouterID
		claims = append(claims, claim(n.Name, v.Match.Pos, s.preferVTEP, s.file.Prefer[n.Name].VTEP.Pos))
	}
	if v.Addresses.Value == "" {
		return
	}
	if v.Addresses.Value == s.file.Members.Loopbacks.Value {
		s.diags.Errorf(CodeInvalid, v.Addresses.Pos, "use a pool of its own, or remove it to use the router ids", "vteps and members use the same pool %q", v.Addresses.Value)
		return
	}
	for owner, a := range alloc.Take(s.ledger, poolVTEP, s.addresses[v.Addresses.Value], claims, alloc.AddressForm, s.diags) {
		s.nodes[owner].VTEP = a
	}
}

// selected are the members among nodes, in the order of their names. There must be some.
func (s *stage) selected(nodes []*lab.Node, pos diag.Pos, what string) []*Node {
	var out []*Node
	for _, ln := range nodes {
		if n := s.nodes[ln.Name]; n != nil {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		s.diags.Errorf(CodeNoMatch, pos, "check its match", "%s matches no member of the fabric", what)
	}
	slices.SortFunc(out, func(a, b *Node) int { return natural.Compare(a.Name, b.Name) })
	return out
}

func (s *stage) reflectors() {
	o := s.file.Overlay
	if o == nil || !o.Reflectors.Set() {
		return
	}
	for _, n := range s.selected(o.Reflectors.Select(s.lab.Nodes, s.diags), o.Reflectors.Pos, "reflectors") {
		if n.Role == RoleVTEP {
			s.diags.Errorf(CodeInvalid, o.Reflectors.Pos, "select nodes that are no VTEPs", "node %q is a VTEP and a route reflector", n.Name)
		}
		n.Role = RoleReflector
	}
}

// customers finds the members outside the underlay.
func (s *stage) customers() {
	c := s.file.Customers
	if c == nil {
		return
	}
	for _, n := range s.selected(c.Match.Select(s.lab.Nodes, s.diags), c.Match.Pos, "customers") {
		if n.Role != RoleRouter {
			s.diags.Errorf(CodeInvalid, c.Match.Pos, "select other nodes", "node %q is a customer and a %s", n.Name, n.Role)
		}
		n.Role = RoleCustomer
	}
}

// speaks reports whether the node takes part in an overlay of ibgp. With customers, all members
// of the underlay do: a packet to a customer has the customer's address on its whole way.
func (s *stage) speaks(n *Node) bool {
	return s.plan.Overlay == IBGP && n.Role != RoleCustomer && (n.Role != RoleRouter || s.plan.unicast)
}

// asns gives the nodes their AS numbers.
func (s *stage) asns() {
	for _, n := range s.plan.Nodes {
		if s.speaks(n) {
			n.ASN = uint32(s.file.Overlay.ASN.Value)
		}
	}
	if c := s.file.Customers; c != nil {
		var claims []alloc.Claim[uint32]
		preferred := map[string]uint32{}
		for _, n := range s.plan.Nodes {
			if p := s.file.Prefer[n.Name].ASN; p.Set {
				preferred[n.Name] = uint32(p.Value)
			}
			if n.Role == RoleCustomer {
				claims = append(claims, claim(n.Name, c.Match.Pos, preferred, s.file.Prefer[n.Name].ASN.Pos))
			}
		}
		for owner, asn := range alloc.Take(s.ledger, poolCustomer, s.numbers[c.ASNs.Value], claims, alloc.NumberForm, s.diags) {
			s.nodes[owner].ASN = asn
		}
	}
	u := s.file.Underlay
	if u.Protocol.Value != EBGP {
		return
	}
	owner := func(n *Node) string {
		if slices.ContainsFunc(u.SharedASN, func(group topology.Str) bool { return group.Value == n.node.Group && n.node.Group != "" }) {
			return "group " + n.node.Group
		}
		return n.Name
	}
	for _, group := range u.SharedASN {
		if !slices.ContainsFunc(s.plan.Nodes, func(n *Node) bool { return n.node.Group == group.Value }) {
			s.diags.Errorf(CodeNoMatch, group.Pos, "write the group of members", "no member is in group %q", group.Value)
		}
	}
	var owners []string // once for those that share a number
	members := map[string][]*Node{}
	preferred, preferredPos := map[string]uint32{}, map[string]diag.Pos{}
	for _, n := range s.plan.Nodes {
		name := owner(n)
		if members[name] == nil {
			owners = append(owners, name)
		}
		members[name] = append(members[name], n)
		if p := s.file.Prefer[n.Name].ASN; p.Set {
			preferred[name], preferredPos[name] = uint32(p.Value), p.Pos
		}
	}
	claims := make([]alloc.Claim[uint32], len(owners))
	for i, name := range owners {
		claims[i] = claim(name, u.ASNs.Pos, preferred, preferredPos[name])
	}
	for name, asn := range alloc.Take(s.ledger, poolASN, s.numbers[u.ASNs.Value], claims, alloc.NumberForm, s.diags) {
		for _, n := range members[name] {
			n.ASN = asn
		}
	}
}

// checkPreferred reports preferences for nodes that are no members, or no VTEPs.
func (s *stage) checkPreferred() {
	for _, name := range slices.Sorted(maps.Keys(s.file.Prefer)) {
		p := s.file.Prefer[name]
		switch n := s.nodes[name]; {
		case n == nil:
			s.diags.Errorf(CodeUnknownNode, p.Pos, "correct the name, or remove the entry", "prefer names node %q, which is no member of the fabric", name)
		case p.VTEP.Value != "" && !n.IsVTEP():
			s.diags.Errorf(CodeUnknownNode, p.VTEP.Pos, "select it in vteps, or remove the entry", "node %q is no VTEP", name)
		case p.ASN.Set && s.plan.Underlay != EBGP && n.Role != RoleCustomer:
			s.diags.Errorf(CodeUnknownNode, p.ASN.Pos, "select it in customers, or remove the entry", "node %q is no customer, so it has no AS number of its own", name)
		}
	}
}

// checkFeatures reports what the members' kinds do not support, at the line that asks for it.
func (s *stage) checkFeatures() {
	f := &s.file
	for _, n := range s.plan.Nodes {
		need := func(feature Feature, pos diag.Pos) {
			if !n.kind.has(feature) {
				s.diags.Errorf(CodeUnsupported, pos, "choose another one, or nodes of a kind that has it (docs/reference/fabric.md)", "the fabric configuration of kind %s does not support %s, and node %q needs it", n.Kind, feature, n.Name)
			}
		}
		need(map[string]Feature{OSPF: FeatureOSPF, ISIS: FeatureISIS, EBGP: FeatureEBGP}[s.plan.Underlay], f.Underlay.Protocol.Pos)
		if f.Underlay.Links.Value == Unnumbered {
			need(FeatureUnnumbered, f.Underlay.Links.Pos)
			if s.plan.Underlay != EBGP {
				s.diags.Errorf(CodeUnsupported, f.Underlay.Links.Pos, "use a pool of prefixes", "unnumbered links need an underlay of ebgp")
			}
		}
		switch {
		case s.plan.Overlay == EBGP:
			need(FeatureEVPN, f.Overlay.Protocol.Pos)
		case s.speaks(n):
			need(FeatureIBGP, f.Overlay.Protocol.Pos)
		}
		if f.Customers != nil {
			need(FeatureCustomers, f.Customers.Match.Pos)
		}
		if len(n.Access) > 0 {
			need(FeatureAccess, f.Access.Hosts.Pos)
		}
		if n.Multicast() {
			need(FeatureMulticast, f.BUM.Replication.Pos)
		}
		if n.advance != nil {
			need(FeaturePorts, f.Underlay.Ports.Pos)
		}
		if n.IsReflector() {
			need(FeatureReflector, f.Overlay.Reflectors.Pos)
		}
		for _, local := range n.Services {
			need(FeatureServices, local.spec.Pos)
			if first, last := n.kind.vlans[0], n.kind.vlans[1]; last != 0 && (local.VLAN < first || local.VLAN > last) {
				s.diags.Errorf(CodeUnsupported, local.spec.VLAN.Pos, fmt.Sprintf("use a VLAN from %d to %d", first, last), "kind %s has no VLAN %d for services, and node %q has service %q", n.Kind, local.VLAN, n.Name, local.Name)
			}
			if len(local.Segments) > 0 {
				need(FeatureMultihoming, f.Multihoming.Hosts.Pos)
			}
			if local.Gateway.IsValid() {
				need(FeatureGateway, local.spec.Gateway.Pos)
			}
		}
	}
}

// peers makes the sessions of an overlay of ibgp: each node with each reflector, and the
// reflectors with each other; without reflectors, all nodes with each other.
func (s *stage) peers() {
	if s.plan.Overlay != IBGP {
		return
	}
	reflected := s.file.Overlay.Reflectors.Set()
	for _, n := range s.plan.Nodes {
		for _, other := range s.plan.Nodes {
			switch {
			case n == other || !s.speaks(n) || !s.speaks(other):
			case reflected && !n.IsReflector() && !other.IsReflector():
			default:
				n.Peers = append(n.Peers, Peer{Name: other.Name, Address: other.RouterID, Client: n.IsReflector() && !other.IsReflector()})
			}
		}
	}
}

func owned(e *lab.Endpoint) string { return fmt.Sprintf("%s:%s", e.Node, e.Interface) }
