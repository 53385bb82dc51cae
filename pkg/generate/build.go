package generate

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// How networks are numbered. Each number depends on the place of its node alone, so that
// it stays when the network grows.
//
//   - Loopbacks: 10.0.0.0/16, a /19 for each tier.
//   - Hosts: 10.128.0.0/9, a /24 for each router of the first tier; the router is .1.
//   - AS numbers: one for each router of the first tier, one for each further tier, so that
//     paths of equal length go by all of its nodes (RFC 7938, section 5.2.1).
const (
	maxTiers      = 8
	tierBits      = 13
	firstASN      = 65000
	lastShortASN  = 65534
	firstLongASN  = 4_200_000_000
	firstTierASN  = 64512
	firstHostByte = 10
)

var (
	loopbacks = netip.MustParseAddr("10.0.0.0")
	lans      = netip.MustParseAddr("10.128.0.0")
)

func plus(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
	return netip.AddrFrom4(b)
}

// asn returns the AS number of router i of a tier, both from 0.
func asn(tier, i int) uint32 {
	if tier > 0 {
		return firstTierASN + uint32(tier) - 1
	}
	if n := uint32(firstASN + 1 + i); n <= lastShortASN {
		return n
	}
	return firstLongASN + uint32(i)
}

func build(o Options) *network {
	n := &network{options: o}
	tiers := make([][]*node, len(o.Tiers))
	for t, tier := range o.Tiers {
		for i := range tier.Count {
			x := &node{
				name: fmt.Sprintf("%s%d", tier.prefix(t), i+1), kind: tier.Kind, typ: tier.Type, group: tier.group(t),
				asn: asn(t, i), loopback: plus(loopbacks, t<<tierBits+i+1),
			}
			tiers[t] = append(tiers[t], x)
			n.nodes = append(n.nodes, x)
		}
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
		for i, x := range first {
			n.link(x, first[(i+1)%len(first)])
		}
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
	}
	for i, x := range first {
		if o.Hosts > 0 && !(o.Shape == Hub && i == 0) {
			n.addHosts(x, i)
		}
	}
	return n
}

// addHosts links hosts to router number i.
func (n *network) addHosts(router *node, i int) {
	lan := plus(lans, i<<8)
	router.lan = netip.PrefixFrom(plus(lan, 1), 24)
	for h := range n.options.Hosts {
		host := &node{
			name: fmt.Sprintf("%s-host%d", router.name, h+1), kind: kindHost, group: "host",
			lan: netip.PrefixFrom(plus(lan, firstHostByte+h+1), 24),
		}
		n.hosts = append(n.hosts, host)
		n.link(router, host)
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
