package compile

import (
	"maps"
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// adopt adds the adopted values to those of an earlier render, which win.
func (c *compiler) adopt() {
	if c.o.Adopt.Empty() {
		return
	}
	previous := &lab.Allocations{Version: lab.AllocationsVersion, Pools: map[string]map[string]string{}}
	if c.o.Previous != nil {
		previous.Released = c.o.Previous.Released
		for pool, values := range c.o.Previous.Pools {
			previous.Pools[pool] = maps.Clone(values)
		}
	}
	add := func(pool, owner, value string) {
		if previous.Pools[pool] == nil {
			previous.Pools[pool] = map[string]string{}
		}
		if _, have := previous.Pools[pool][owner]; !have && value != "" {
			previous.Pools[pool][owner] = value
		}
	}
	for _, n := range c.order {
		add(poolIPv4, n.Name, adopted(c.o.Adopt.IPv4, n))
		add(poolIPv6, n.Name, adopted(c.o.Adopt.IPv6, n))
	}
	for _, l := range c.lab.Links {
		if id := c.adoptedWire(l); id != 0 {
			add(poolWire, wireOwner(l), alloc.NumberForm.Text(id))
		}
	}
	c.o.Previous = previous
}

// adopted is the value of a node, by its name in the topology or in Kubernetes.
func adopted(values map[string]string, n *node) string {
	if v, ok := values[n.Name]; ok {
		return v
	}
	return values[n.ID]
}

// adoptedWire is the id of a link, 0 for none.
func (c *compiler) adoptedWire(l *lab.Link) uint32 {
	if len(l.Endpoints) != 2 || len(c.o.Adopt.Wires) == 0 {
		return 0
	}
	names := func(e *lab.Endpoint) []string {
		out := []string{e.Node + ":" + e.Interface, e.Node + ":" + e.Written()}
		if n := c.nodes[e.Node]; n != nil {
			out = append(out, n.ID+":"+e.Interface, n.ID+":"+e.Written())
		}
		return out
	}
	for _, a := range names(l.Endpoints[0]) {
		for _, b := range names(l.Endpoints[1]) {
			for _, ends := range [][2]string{{a, b}, {b, a}} {
				if id := c.o.Adopt.Wires[ends]; id != 0 {
					return id
				}
			}
		}
	}
	return 0
}

// checkAdopted reports adopted addresses that a node did not get.
func (c *compiler) checkAdopted() {
	if c.o.Adopt.Empty() {
		return
	}
	for _, n := range c.order {
		for want, got := range map[string]string{adopted(c.o.Adopt.IPv4, n): addressText(n.MgmtIPv4), adopted(c.o.Adopt.IPv6, n): addressText(n.MgmtIPv6)} {
			if want != "" && got != "" && want != got {
				c.diags.Warnf(CodeNotAdopted, n.Pos, "set mgmt-ipv4 or mgmt-ipv6 of the node, or the subnet under mgmt", "node %q gets %s and not its old address %s", n.Name, got, want)
			}
		}
	}
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
