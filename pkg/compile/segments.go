package compile

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// bridgeKind is the kind of the node that a segment becomes.
const bridgeKind = "bridge"

// segment is a network of the policy under construction.
type segment struct {
	lab.Segment
	bridge *node
	// ends are the members' ends of its links; gateway is the one of the gateway, or nil.
	ends    []*lab.Endpoint
	gateway *lab.Endpoint
}

// bridgeSegments adds a bridge node for each segment of the policy. All later steps treat it as
// a bridge of the topology, but it inherits nothing from the topology's defaults.
func (c *compiler) bridgeSegments() {
	if c.o.Policy == nil {
		return
	}
	for _, s := range c.o.Policy.Segments() {
		if other := c.nodes[s.Name]; other != nil {
			c.diags.Errorf(CodeSegmentName, s.Pos, "rename one of the two", "segment %q has the name of a node (at %s)", s.Name, other.Pos)
			continue
		}
		def := &topology.NodeDef{Pos: s.Pos, Kind: topology.Str{Value: bridgeKind, Pos: s.Pos}}
		c.addNode(topology.Def{Name: s.Name, Pos: s.Pos, Node: def}, resolved{own: def, levels: []*topology.NodeDef{def}, kind: bridgeKind, pos: s.Pos})
		if n := c.nodes[s.Name]; n != nil {
			n.GroupForwardMask = &s.Forward
			c.segments = append(c.segments, &segment{Segment: s, bridge: n})
		}
	}
}

// joinSegments adds the links between members and bridges. Selectors see the links of the
// topology only.
func (c *compiler) joinSegments() {
	var nodes []*lab.Node
	for _, n := range c.order {
		if !n.RootNamespace {
			nodes = append(nodes, n.Node)
		}
	}
	members := make([][]lab.Member, len(c.segments))
	for i, s := range c.segments {
		members[i] = s.Members(nodes, c.diags)
	}
	for i, s := range c.segments {
		c.joinSegment(s, members[i])
	}
}

func (c *compiler) joinSegment(s *segment, members []lab.Member) {
	if s.Gateway.Node != "" {
		gateway := s.gatewayMember(members)
		members = slices.DeleteFunc(members, func(m lab.Member) bool { return m.Node.Name == s.Gateway.Node })
		switch n := c.nodes[s.Gateway.Node]; {
		case n == nil:
			c.diags.Errorf(CodeUnknownNode, gateway.Pos, c.nodeHint(s.Gateway.Node), "the gateway of segment %q is %q, which is neither a node of the topology nor an address", s.Name, s.Gateway.Node)
		case n.RootNamespace:
			c.diags.Errorf(CodeSegmentGateway, gateway.Pos, "name a node with a container", "the gateway of segment %q is node %q of kind %s, which has no interfaces of its own", s.Name, n.Name, n.Kind)
		default:
			s.gateway = c.join(s, n.Name, gateway)
		}
	}
	for _, m := range members {
		c.join(s, m.Node.Name, m)
	}
	for _, e := range s.bridge.Endpoints {
		far := c.farEnd(e)
		e.Isolated = s.Isolate && far != nil && far != s.gateway
	}
}

// gatewayMember is how the gateway joins: with its own interface, with the one that it has as
// a member, or with that of the first entry of members.
func (s *segment) gatewayMember(members []lab.Member) lab.Member {
	out := lab.Member{Interface: s.Gateway.Interface, Pos: s.Gateway.Pos}
	for _, m := range members {
		if m.Node.Name == s.Gateway.Node {
			out.Interface = cmp.Or(out.Interface, m.Interface)
		}
	}
	out.Interface = cmp.Or(out.Interface, s.Interface)
	return out
}

// join links an interface of a node to the bridge. The port has the names of both. It returns
// the node's end, nil after an error.
func (c *compiler) join(s *segment, name string, m lab.Member) *lab.Endpoint {
	at := func(node, iface string) topology.Endpoint {
		return topology.Endpoint{Pos: m.Pos, Node: topology.Str{Value: node, Pos: m.Pos}, Interface: topology.Str{Value: iface, Pos: m.Pos}}
	}
	port := m.Interface
	if n := c.nodes[name]; n != nil && n.kind != nil {
		if linux, _, err := n.kind.MapInterface(m.Interface, n.Node); err == nil {
			port = linux
		}
	}
	l := c.addLink(&topology.Link{Pos: m.Pos, Endpoints: []topology.Endpoint{at(name, m.Interface), at(s.Name, name+"-"+port)}})
	if l == nil || len(l.Endpoints) != 2 {
		return nil
	}
	s.ends = append(s.ends, l.Endpoints[0])
	return l.Endpoints[0]
}

// farEnd is the other end of an end's link, nil if there is none in the lab.
func (c *compiler) farEnd(e *lab.Endpoint) *lab.Endpoint {
	if e.Link < 0 {
		return nil
	}
	return c.lab.Links[e.Link].Far(e)
}

// allocateSegments gives the members of segments with a subnet their addresses.
func (c *compiler) allocateSegments() {
	for _, s := range c.segments {
		if !s.Subnet.IsValid() {
			continue
		}
		for _, m := range []netip.Prefix{c.lab.Mgmt.IPv4.Subnet, c.lab.Mgmt.IPv6.Subnet} {
			if m.IsValid() && m.Overlaps(s.Subnet) {
				c.diags.Errorf(CodeSegmentSubnet, s.SubnetPos, "choose another subnet for the segment", "subnet %s of segment %q overlaps %s, the management network", s.Subnet, s.Name, m)
			}
		}
		c.allocateSegment(s)
	}
}

func (c *compiler) allocateSegment(s *segment) {
	pool := alloc.Addresses(fmt.Sprintf("addresses of segment %q", s.Name), s.Subnet, netip.Prefix{}, s.Gateway.Address)
	pool.Larger = "set a larger subnet for the segment"
	// Links of the topology may lead to the bridge too, with addresses of their own.
	for _, e := range s.bridge.Endpoints {
		far := c.farEnd(e)
		if far == nil {
			continue
		}
		for _, a := range []netip.Addr{far.IPv4.Addr(), far.IPv6.Addr()} {
			if s.gateway != nil && a.IsValid() && a == s.Gateway.Address {
				c.diags.Errorf(CodeSegmentGateway, s.Gateway.Pos, "set another address for one of the two", "the gateway of segment %q gets %s, and %s:%s has it already (at %s)", s.Name, a, far.Node, far.Interface, far.Pos)
			}
			pool.Reserved = append(pool.Reserved, a)
		}
	}
	ends := map[string]*lab.Endpoint{}
	var claims []alloc.Claim[netip.Addr]
	for _, e := range s.ends {
		owner := e.Node + ":" + e.Interface
		if ends[owner] != nil {
			continue // two links use the interface, which is an error
		}
		ends[owner] = e
		claim := alloc.Claim[netip.Addr]{Owner: owner, Pos: e.Pos}
		if e == s.gateway {
			claim.Want, claim.Has = s.Gateway.Address, true
		}
		claims = append(claims, claim)
	}
	for owner, a := range take(c, poolSegment+s.Name, pool, claims, alloc.AddressForm) {
		p := netip.PrefixFrom(a, s.Subnet.Bits())
		if a.Is4() {
			ends[owner].IPv4 = p
		} else {
			ends[owner].IPv6 = p
		}
	}
}
