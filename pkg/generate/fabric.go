package generate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/fabric"
)

// fabric writes the fabric file.
func (n *network) fabric() []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	o, ebgp := n.options, n.underlay == fabric.EBGP
	links := "links"
	if ebgp && o.supports(fabric.FeatureUnnumbered) {
		links = fabric.Unnumbered
	}
	var groups, shared []string
	for t, tier := range o.Tiers {
		groups = append(groups, tier.group(t))
		if t > 0 {
			shared = append(shared, tier.group(t))
		}
	}
	customers := o.Shape == ISP && o.Customers > 0
	if customers {
		groups = append(groups, groupCustomer)
	}
	line("# Numbers and configures the routers of the lab %s; see \"c9s fabric show\".", o.Name)
	line("apiVersion: %s", fabric.APIVersion)
	line("kind: %s", fabric.Kind)
	line("pools:")
	line("  loopbacks: {addresses: [10.0.0.0/16]}")
	if links != fabric.Unnumbered {
		line("  links: {prefixes: [10.64.0.0/10], length: 31}")
	}
	if len(n.hosts) > 0 {
		line("  hosts: {prefixes: [%s/9], length: 31}", lans)
	}
	if ebgp || customers {
		line("  asns: {numbers: [65001-65534, 4200000001-4200009999]}")
	}
	line("members: {match: {groups: [%s]}, loopbacks: loopbacks}", strings.Join(groups, ", "))
	underlay := fmt.Sprintf("protocol: %s, links: %s", n.underlay, links)
	if ebgp {
		underlay += ", asns: asns"
	}
	if ebgp && len(shared) > 0 {
		line("# Each %s has an AS number of its own; the routers of each other tier share one (RFC 7938).", o.Tiers[0].noun(0))
		underlay += fmt.Sprintf(", sharedASN: [%s]", strings.Join(shared, ", "))
	}
	if ports := n.ports(); ports > 0 {
		line("# Routers without hosts and customers are ready for %d links, so a new neighbour does not restart them.", ports)
		underlay += fmt.Sprintf(", ports: %d", ports)
	}
	line("underlay: {%s}", underlay)
	if customers {
		line("overlay: {protocol: ibgp, asn: %d, reflectors: {names: [%s]}}", providerASN, strings.Join(nodeNames(n.reflectors), ", "))
		line("customers: {match: {groups: [%s]}, asns: asns}", groupCustomer)
	}
	if len(n.hosts) > 0 {
		line("# Each link to a host is a subnet of its own, with addresses that the topology sets.")
		line("access: {hosts: {groups: [%s]}, links: hosts, routes: [10.0.0.0/8]}", groupHost)
	} else {
		line("prefer: # the checks ping these")
		for i, x := range n.ends {
			line("  %s: {loopback: %s}", x.name, loopback(i))
		}
	}
	return out.Bytes()
}

// ports is the number of ports that routers between others are configured for in advance, with
// room for growth; 0 if that is of no use.
func (n *network) ports() int {
	o, most := n.options, 0
	if len(o.Tiers) < 2 || !o.supports(fabric.FeaturePorts) {
		return 0
	}
	for _, x := range n.nodes[o.Tiers[0].Count:] {
		most = max(most, len(x.peers))
	}
	if ports := (most/16 + 1) * 16; ports <= fabric.MaxPorts {
		return ports
	}
	return 0
}

// providerASN is the AS number of an ISP. It is one for documentation (RFC 5398).
const providerASN = 64500

func nodeNames(nodes []*node) []string {
	out := make([]string, len(nodes))
	for i, x := range nodes {
		out[i] = x.name
	}
	return out
}

// sessions is the number of a router's neighbours by protocol.
func (n *network) sessions(x *node) map[string]int {
	out := map[string]int{}
	for _, peer := range x.peers {
		switch {
		case peer.host:
		case peer.group == groupCustomer || x.group == groupCustomer:
			out[fabric.EBGP]++
		default:
			out[n.underlay]++
		}
	}
	if n.options.Shape == ISP && n.options.Customers > 0 && x.group != groupCustomer {
		out[fabric.EBGP] += len(n.reflectors)
		if slices.Contains(n.reflectors, x) {
			out[fabric.EBGP] += n.options.Tiers[0].Count + n.options.Tiers[1].Count - 1 - len(n.reflectors)
		}
	}
	return out
}
