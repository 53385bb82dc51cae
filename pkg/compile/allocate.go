package compile

import (
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// The pools by their names in lab.Allocations.
const (
	poolIPv4  = "mgmt-ipv4"
	poolIPv6  = "mgmt-ipv6"
	poolIndex = "index"
	poolWire  = "wire"
	poolMAC   = "mac"
	poolPort  = "port"
	// poolSegment begins the names of pools of segments.
	poolSegment = "segment/"
)

// allocate allocates management addresses, node indexes, wire ids and MAC addresses from
// their pools.
func (c *compiler) allocate() {
	for _, p := range c.hostPorts[:min(1, len(c.hostPorts))] {
		more := ""
		if n := len(c.hostPorts); n > 1 {
			more = " (and of " + diag.Count(n-1, "more port") + ")"
		}
		c.diags.Warnf(CodeHostPort, p, "reach the node through its Service", "the host side of a port has no effect in a cluster%s", more)
	}
	c.adopt()
	c.ledger = alloc.Ledger{Recycle: c.o.Recycle, Pools: map[string]map[string]string{}}
	if p := c.o.Previous; p != nil {
		c.ledger.Before, c.ledger.ReleasedBefore = p.Pools, p.Released
	}
	c.allocateIndexes()
	c.allocateMgmt()
	c.allocateSegments()
	c.allocateWires()
	c.allocateMACs()
	c.checkAdopted()
}

// take allocates from a pool. The values become part of the lab.
func take[V comparable](c *compiler, name string, p alloc.Pool[V], claims []alloc.Claim[V], form alloc.Form[V]) map[string]V {
	return alloc.Take(&c.ledger, name, p, claims, form, c.diags)
}

func (c *compiler) allocateIndexes() {
	last := uint32(1022)
	for int(last) < 2*len(c.order) {
		last = last*4 + 3
	}
	var claims, limited []alloc.Claim[uint32]
	for _, n := range c.order {
		claim := alloc.Claim[uint32]{Owner: n.Name, Pos: n.Pos}
		if n.kind != nil && n.kind.Indexes > 0 && n.kind.Indexes < int(last) {
			claim.Within = uint64(n.kind.Indexes)
			limited = append(limited, claim)
			continue
		}
		claims = append(claims, claim)
	}
	claims = append(limited, claims...) // first those that cannot have every index
	for owner, v := range take(c, poolIndex, alloc.Numbers("node indexes", 1, last), claims, alloc.NumberForm) {
		c.nodes[owner].Index = int(v)
	}
}

func (c *compiler) allocateMgmt() {
	var v4, v6 []alloc.Claim[netip.Addr]
	for _, n := range c.order {
		if n.OnMgmtNetwork() {
			v4 = append(v4, alloc.Claim[netip.Addr]{Owner: n.Name, Want: n.want4, Has: n.has4, Pos: n.Pos})
		}
	}
	c.growMgmt(len(v4))
	m := c.lab.Mgmt
	if m.IPv4.Subnet.IsValid() {
		p := alloc.Addresses("IPv4 management addresses", m.IPv4.Subnet, m.IPv4.Range, m.IPv4.Gateway)
		p.Larger = "set a larger subnet (mgmt: {ipv4-subnet: 10.0.0.0/12}), and ipv4-range if you use it"
		for owner, a := range take(c, poolIPv4, p, v4, alloc.AddressForm) {
			c.nodes[owner].MgmtIPv4 = a
		}
	}
	for _, n := range c.order {
		if n.OnMgmtNetwork() {
			claim := alloc.Claim[netip.Addr]{Owner: n.Name, Want: n.want6, Has: n.has6, Pos: n.Pos}
			if m.IPv6.Subnet.IsValid() && n.MgmtIPv4.IsValid() {
				claim.Prefer, claim.HasPrefer = sameHost(m, n.MgmtIPv4), true
			}
			v6 = append(v6, claim)
		}
	}
	if m.IPv6.Subnet.IsValid() {
		p := alloc.Addresses("IPv6 management addresses", m.IPv6.Subnet, m.IPv6.Range, m.IPv6.Gateway)
		p.Larger = "set a larger mgmt: {ipv6-subnet: ...}, and ipv6-range if you use it"
		for owner, a := range take(c, poolIPv6, p, v6, alloc.AddressForm) {
			c.nodes[owner].MgmtIPv6 = a
		}
	}
}

// growMgmt gives a lab with more nodes than the default IPv4 subnet has addresses the
// larger one, if the file leaves the subnet to c9s. A lab that has grown keeps it after an
// edit, because its addresses are spread over it.
func (c *compiler) growMgmt(nodes int) {
	f := &c.lab.Mgmt.IPv4
	m := c.f.Mgmt
	if m == nil {
		m = &topology.Mgmt{Pos: diag.Pos{File: c.f.Path}}
	}
	if f.Subnet != defaultIPv4 || m.IPv4Subnet.Value == defaultIPv4.String() || m.OldIPv4Subnet.Value != "" || m.IPv4Gateway.Value != "" || m.IPv4Range.Value != "" {
		return
	}
	const reserved = 3 // network, gateway and broadcast
	if nodes <= 1<<(32-defaultIPv4.Bits())-reserved && !c.hasGrown() {
		return
	}
	*f = lab.MgmtFamily{Subnet: grownIPv4, Gateway: grownIPv4.Addr().Next()}
	if nodes <= 1<<(32-grownIPv4.Bits())-reserved {
		c.diags.Warnf(CodeMgmtGrown, m.Pos, "set ipv4-subnet under mgmt to choose another one",
			"%d nodes do not fit the default management subnet %s; %s is used", nodes, defaultIPv4, grownIPv4)
	}
}

// hasGrown reports whether a node of the lab has an address that only the larger subnet has.
func (c *compiler) hasGrown() bool {
	if c.o.Previous == nil {
		return false
	}
	for owner, text := range c.o.Previous.Pools[poolIPv4] {
		a, err := netip.ParseAddr(text)
		if err == nil && c.nodes[owner] != nil && grownIPv4.Contains(a) && !defaultIPv4.Contains(a) {
			return true
		}
	}
	return false
}

// sameHost is the IPv6 address with the host number of the IPv4 one: people like
// .17 and ::17 to be the same node.
func sameHost(m lab.Mgmt, v4 netip.Addr) netip.Addr {
	base := m.IPv6.Subnet
	if m.IPv6.Range.IsValid() {
		base = m.IPv6.Range
	}
	return alloc.HostNumber(base, alloc.NumberOf(m.IPv4.Subnet, v4))
}

func (c *compiler) allocateWires() {
	var claims []alloc.Claim[uint32]
	links := map[string]*lab.Link{}
	for _, l := range c.lab.Links {
		if len(l.Endpoints) == 2 {
			owner := wireOwner(l)
			if links[owner] != nil {
				continue // a duplicate endpoint, told already
			}
			links[owner] = l
			claims = append(claims, alloc.Claim[uint32]{Owner: owner, Pos: l.Pos})
		}
	}
	for owner, v := range take(c, poolWire, alloc.Numbers("wire ids", 1, 1<<24-1), claims, alloc.NumberForm) {
		links[owner].WireID = lab.WireID(v)
	}
}

func (c *compiler) allocateMACs() {
	var claims []alloc.Claim[string]
	ends := map[string]*lab.Endpoint{}
	written := map[string]diag.Pos{}
	for _, n := range c.order {
		for _, e := range n.Endpoints {
			if e.MAC != "" {
				written[e.MAC] = e.Pos
			}
		}
	}
	pool := alloc.MACs()
	for mac := range written {
		pool.Reserved = append(pool.Reserved, mac)
	}
	for _, n := range c.order {
		for _, e := range n.Endpoints {
			owner := n.Name + ":" + e.Interface
			if e.MAC != "" || ends[owner] != nil {
				continue
			}
			ends[owner] = e
			claims = append(claims, alloc.Claim[string]{Owner: owner, Pos: e.Pos})
		}
	}
	for owner, mac := range take(c, poolMAC, pool, claims, alloc.TextForm) {
		ends[owner].MAC = mac
	}
}

// allocatePorts gives every node behind the shared load balancer its range of ports. The
// policy decides which those are.
func (c *compiler) allocatePorts() {
	var claims []alloc.Claim[uint32]
	for _, n := range c.order {
		if e := n.Policy.Expose; e != nil && e.Shared {
			claims = append(claims, alloc.Claim[uint32]{Owner: n.Name, Pos: n.Pos})
		}
	}
	pool := alloc.Ranges("port ranges of the shared load balancer", lab.FirstSharedPort, lab.LastSharedPort, lab.SharedPorts)
	pool.Larger = "expose fewer nodes with shared: true"
	for owner, first := range take(c, poolPort, pool, claims, alloc.NumberForm) {
		c.nodes[owner].SharedPort = uint16(first)
	}
}
