package generate

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/fabric"
)

// The addresses of hosts are in the topology. Each depends on the place of its node alone, so
// that it stays when the network grows: 10.128.0.0/9 has a /23 for each router with hosts, and
// in it a /31 for each host, whose router has the lower address.
const (
	lanBits  = 9
	maxTiers = 8
)

var lans = netip.MustParseAddr("10.128.0.0")

func plus(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
	return netip.AddrFrom4(b)
}

// node is a router or a host.
type node struct {
	name, kind, typ string
	group           string
	// lan is the first address of a router's hosts.
	lan  netip.Addr
	host bool
	// peers are the nodes at its ports, in the order of its interfaces.
	peers []*node
}

// end is one end of a link. The address is invalid if the fabric gives it one.
type end struct {
	node    *node
	port    int
	address netip.Prefix
}

// network is a network with the addresses of its hosts.
type network struct {
	options Options
	// underlay is the protocol of the fabric, "" for a network without one.
	underlay string
	nodes    []*node // without hosts, each with its links after it
	links    [][2]end
	hosts    []*node
	// ends are the routers that have hosts, if there are any.
	ends []*node
	// reflectors are the route reflectors of an ISP.
	reflectors []*node
}

func (n *network) link(a, b *node) {
	n.links = append(n.links, [2]end{{node: a, port: len(a.peers)}, {node: b, port: len(b.peers)}})
	a.peers, b.peers = append(a.peers, b), append(b.peers, a)
}

func build(o Options) *network {
	n := &network{options: o}
	tiers := make([][]*node, len(o.Tiers))
	for t, tier := range o.Tiers {
		for i := range tier.Count {
			tiers[t] = append(tiers[t], &node{name: fmt.Sprintf("%s%d", tier.prefix(t), i+1), kind: tier.Kind, typ: tier.Type, group: tier.group(t), lan: plus(lans, i<<lanBits)})
		}
		n.nodes = append(n.nodes, tiers[t]...)
	}
	first := tiers[0]
	switch o.Shape {
	case Clos:
		for t := range len(tiers) - 1 {
			for _, low := range tiers[t] {
				for _, high := range tiers[t+1] {
					n.link(low, high)
				}
			}
		}
	case Ring:
		n.ring(first)
	case Mesh:
		for i, x := range first {
			for _, y := range first[i+1:] {
				n.link(x, y)
			}
		}
	case Hub:
		for _, spoke := range first[1:] {
			n.link(first[0], spoke)
		}
		first = first[1:] // those with hosts
	case ISP:
		first = n.isp(tiers[0], tiers[1])
	}
	n.ends = first
	for _, x := range first {
		n.addHosts(x)
	}
	return n
}

// ring links each node to the next one. Two nodes have one link, and one node has none.
func (n *network) ring(nodes []*node) {
	for i, x := range nodes {
		if next := (i + 1) % len(nodes); next > i || len(nodes) > 2 {
			n.link(x, nodes[next])
		}
	}
}

// isp links provider edges to two core routers each, and customers to their edge. It returns the
// customers, or the edges if there are none.
func (n *network) isp(edges, core []*node) []*node {
	n.ring(core)
	n.reflectors = core[:min(2, len(core))]
	var customers []*node
	for i, edge := range edges {
		n.link(edge, core[i%len(core)])
		if len(core) > 1 {
			n.link(edge, core[(i+1)%len(core)])
		}
		for c := range n.options.Customers {
			customer := &node{
				name: fmt.Sprintf("%s-ce%d", edge.name, c+1), kind: edge.kind, typ: edge.typ, group: groupCustomer,
				lan: plus(lans, (i*maxCustomers+c)<<lanBits),
			}
			customers = append(customers, customer)
			n.link(edge, customer)
		}
	}
	n.nodes = append(n.nodes, customers...)
	if len(customers) == 0 {
		return edges
	}
	return customers
}

// addHosts links hosts to a router.
func (n *network) addHosts(router *node) {
	for h := range n.options.Hosts {
		host := &node{name: fmt.Sprintf("%s-host%d", router.name, h+1), kind: kindHost, group: groupHost, host: true}
		n.hosts = append(n.hosts, host)
		n.link(router, host)
		ends := &n.links[len(n.links)-1]
		for i := range ends {
			ends[i].address = netip.PrefixFrom(plus(router.lan, 2*h+i), 31)
		}
	}
}

// prefix is what the names of tier t's nodes start with.
func (t Tier) prefix(i int) string {
	if t.Name == "" {
		return fmt.Sprintf("node%d-", i+1)
	}
	return t.Name
}

func (t Tier) group(i int) string {
	if t.Name == "" {
		return fmt.Sprintf("tier-%d", i+1)
	}
	return t.Name
}

// image is the image of a tier's routers, "" if the user has to fill it in.
func (o Options) image(kind string) string {
	if image := o.Images[kind]; image != "" {
		return image
	}
	return map[string]string{KindFRR: imageFRR, kindHost: imageFRR, "nokia_srlinux": imageSRL}[kind]
}

// supports reports whether the fabric configurations of all routers have a feature.
func (o Options) supports(f fabric.Feature) bool {
	for _, t := range o.Tiers {
		if !fabric.Supports(t.Kind, o.image(t.Kind), f) {
			return false
		}
	}
	return true
}

// protocols are the underlays that a network can have, the default first.
func (o Options) protocols() []string {
	var out []string
	for _, p := range []struct {
		name    string
		feature fabric.Feature
	}{{fabric.EBGP, fabric.FeatureEBGP}, {fabric.ISIS, fabric.FeatureISIS}, {fabric.OSPF, fabric.FeatureOSPF}} {
		if o.supports(p.feature) && !(o.Shape == ISP && (p.name == fabric.EBGP || o.Customers > 0 && !o.supports(fabric.FeatureCustomers))) {
			out = append(out, p.name)
		}
	}
	return out
}
