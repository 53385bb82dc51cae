package generate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bridge is the interface of a router to its hosts.
const bridge = "lan"

// names are the interfaces of kinds that have no eth1, by the first one's name.
var names = map[string]struct {
	format string
	first  int
}{
	"arrcus_arcos":  {"swp%d", 1},
	"cisco_c8000":   {"Hu0_0_0_%d", 0},
	"cisco_xrd":     {"Gi0-0-0-%d", 0},
	"cumulus_cvx":   {"swp%d", 1},
	"nokia_srlinux": {"e1-%d", 1},
	"spirent_stc":   {"port%d", 1},
}

// iface is the name of interface i, from 0, in the topology.
func iface(kind string, i int) string {
	if n, ok := names[kind]; ok {
		return fmt.Sprintf(n.format, n.first+i)
	}
	return fmt.Sprintf("eth%d", i+1)
}

func configPath(x *node) string { return "startup/" + x.name + ".conf" }

// images returns the image of every kind of the network; one that has none is left to the user.
func (n *network) images() map[string]string {
	known := map[string]string{KindFRR: imageFRR, kindHost: imageHost, "nokia_srlinux": imageSRL}
	out := map[string]string{}
	for _, t := range n.options.Tiers {
		out[t.Kind] = known[t.Kind]
	}
	if len(n.hosts) > 0 {
		out[kindHost] = imageHost
	}
	for kind, image := range n.options.Images {
		if _, used := out[kind]; used {
			out[kind] = image
		}
	}
	return out
}

// topology writes the topology file. Without files, it names none, and the nodes have only their
// kinds' own configurations.
func (n *network) topology(files bool) []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	configured := files && n.configured()
	line("# %s.", n.describe())
	if configured {
		line("# Routers speak BGP on every link, without addresses (RFC 8950), and announce their loopbacks")
		line("# and the networks of their hosts.")
	}
	line("name: %s", n.options.Name)
	line("topology:")
	line("  kinds:")
	images := n.images()
	for _, kind := range slices.Sorted(maps.Keys(images)) {
		if images[kind] == "" {
			line("    %s: {image: CHANGE-ME} # the image is not public", kind)
		} else {
			line("    %s: {image: %q}", kind, images[kind])
		}
	}
	line("  nodes:")
	for _, x := range n.nodes {
		line("    %s:", x.name)
		line("      kind: %s", x.kind)
		if x.typ != "" {
			line("      type: %s", x.typ)
		}
		line("      group: %s", x.group)
		if !configured {
			continue
		}
		line("      startup-config: %s", configPath(x))
		if x.lan.IsValid() {
			line("      exec:")
			line("        - ip link add %s type bridge", bridge)
			for i, p := range x.ports {
				if p.peer.group == "host" {
					line("        - ip link set %s master %s", iface(x.kind, i), bridge)
				}
			}
			line("        - ip link set %s up", bridge)
		}
	}
	for _, x := range n.hosts {
		line("    %s:", x.name)
		line("      kind: %s", x.kind)
		line("      group: %s", x.group)
		if configured {
			line("      exec:")
			line("        - ip addr add %s dev eth1", x.lan)
			line("        - ip route replace 10.0.0.0/8 via %s", x.ports[0].peer.lan.Addr())
		}
	}
	if len(n.links) > 0 {
		line("  links:")
	}
	for _, l := range n.links {
		a, b := l[0], l[1]
		line("    - endpoints: [\"%s:%s\", \"%s:%s\"]", a.node.name, iface(a.node.kind, a.port), b.node.name, iface(b.node.kind, b.port))
	}
	return out.Bytes()
}

// describe says what the network is, as a sentence without its end.
func (n *network) describe() string {
	o := n.options
	var parts []string
	for t, tier := range o.Tiers {
		name := tier.Name
		if name == "" {
			name = fmt.Sprintf("node of tier %d", t+1)
		}
		parts = append(parts, fmt.Sprintf("%d %s", tier.Count, plural(name, tier.Count)))
	}
	slices.Reverse(parts)
	text := strings.Join(parts, ", ")
	switch o.Shape {
	case Ring:
		text = "A ring of " + text
	case Mesh:
		text = "A full mesh of " + text
	case Hub:
		text = fmt.Sprintf("A hub and %d %s", o.Tiers[0].Count-1, plural("spoke", o.Tiers[0].Count-1))
	default:
		text = "A Clos fabric: " + text
	}
	if len(n.hosts) > 0 {
		text += fmt.Sprintf(" and %d %s", len(n.hosts), plural("host", len(n.hosts)))
	}
	return text
}

func plural(noun string, n int) string {
	switch {
	case n == 1:
		return noun
	case noun == "leaf":
		return "leaves"
	case strings.HasPrefix(noun, "node of"):
		return "nodes" + strings.TrimPrefix(noun, "node")
	}
	return noun + "s"
}

// frrConfig writes a router's frr.conf. See FRR's manual, "BGP", for unnumbered neighbours.
func frrConfig(x *node) []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("frr defaults datacenter")
	line("hostname %s", x.name)
	line("!")
	line("interface lo")
	line(" ip address %s/32", x.loopback)
	if x.lan.IsValid() {
		line("!")
		line("interface %s", bridge)
		line(" ip address %s", x.lan)
	}
	line("!")
	line("router bgp %d", x.asn)
	line(" bgp router-id %s", x.loopback)
	line(" no bgp ebgp-requires-policy")
	line(" bgp bestpath as-path multipath-relax")
	line(" neighbor fabric peer-group")
	line(" neighbor fabric remote-as external")
	for i, p := range x.ports {
		if p.peer.group != "host" {
			line(" neighbor %s interface peer-group fabric", iface(x.kind, i))
			line(" neighbor %s description %s:%s", iface(x.kind, i), p.peer.name, iface(p.peer.kind, p.far))
		}
	}
	line(" !")
	line(" address-family ipv4 unicast")
	line("  network %s/32", x.loopback)
	if x.lan.IsValid() {
		line("  network %s", x.lan.Masked())
	}
	line(" exit-address-family")
	line("!")
	return out.Bytes()
}

// manyHosts is how many hosts reach one another in the checks; of more, the first and the last
// reach all.
const manyHosts = 20

// checks writes the file for c9s test.
func (n *network) checks() []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("# c9s test runs these checks.")
	line("apiVersion: c9s.dev/v1")
	line("kind: Test")
	line("basics: [links, management, names]")
	byCount := map[int][]string{}
	for _, x := range n.nodes {
		peers := 0
		for _, p := range x.ports {
			if p.peer.group != "host" {
				peers++
			}
		}
		byCount[peers] = append(byCount[peers], x.name)
	}
	delete(byCount, 0)
	if len(byCount) > 0 {
		line("neighbours:")
	}
	for _, count := range slices.Sorted(maps.Keys(byCount)) {
		line("  - {nodes: [%s], protocol: bgp, count: %d}", strings.Join(byCount[count], ", "), count)
	}
	from, name := n.nodes, "loopbacks"
	to := make([]string, 0, max(len(n.nodes), len(n.hosts)))
	if len(n.hosts) > 0 {
		from, name = n.hosts, "hosts"
		for _, h := range n.hosts {
			to = append(to, h.lan.Addr().String())
		}
	} else {
		// Nodes of a further tier share an AS number, so they reject each other's paths.
		for _, x := range n.nodes[:n.options.Tiers[0].Count] {
			to = append(to, x.loopback.String())
		}
	}
	if len(from) > manyHosts {
		from = []*node{from[0], from[len(from)-1]}
	}
	names := make([]string, len(from))
	for i, x := range from {
		names[i] = x.name
	}
	line("reachability:")
	line("  - name: %s", name)
	line("    from: [%s]", strings.Join(names, ", "))
	line("    to: [%s]", strings.Join(to, ", "))
	return out.Bytes()
}
