package generate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

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

// placeholder stands for an image that only the user has.
const placeholder = "CHANGE-ME"

// images returns the images of all kinds, as far as they are known.
func (n *network) images() map[string]string {
	out := map[string]string{}
	for _, t := range n.options.Tiers {
		out[t.Kind] = n.options.image(t.Kind)
		if t.Kind == kindHost && n.options.Images[kindHost] == "" {
			out[t.Kind] = imageHost
		}
	}
	if _, routers := out[kindHost]; len(n.hosts) > 0 && (!routers || n.underlay != "") {
		out[kindHost] = imageHost
		if image := n.options.Images[kindHost]; image != "" && !routers {
			out[kindHost] = image
		}
	}
	return out
}

// manyNodes is the number of nodes from which the default management network is too small.
const manyNodes = 200

// topology writes the topology file.
func (n *network) topology() []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("# %s.", n.describe())
	if n.underlay != "" {
		line("# fabric.yaml configures the routers.")
	}
	line("name: %s", text(n.options.Name))
	if len(n.nodes)+len(n.hosts) > manyNodes {
		line("mgmt:")
		line("  ipv4-subnet: 172.20.0.0/16")
		line("  ipv6-subnet: 3fff:172:20:20::/64 # the default, which an ipv4-subnet removes")
	}
	line("topology:")
	line("  kinds:")
	images := n.images()
	for _, kind := range slices.Sorted(maps.Keys(images)) {
		if images[kind] == "" {
			line("    %s: {image: %s} # the image is not public", kind, placeholder)
		} else {
			line("    %s: {image: %q}", kind, images[kind])
		}
	}
	line("  nodes:")
	for _, x := range slices.Concat(n.nodes, n.hosts) {
		line("    %s:", x.name)
		line("      kind: %s", x.kind)
		if x.typ != "" {
			line("      type: %s", text(x.typ))
		}
		if image := n.options.image(x.kind); x.kind == kindHost && !x.host && n.underlay != "" && image != images[kindHost] {
			line("      image: %q", image)
		}
		line("      group: %s", x.group)
	}
	if len(n.links) > 0 {
		line("  links:")
	}
	for _, l := range n.links {
		a, b := l[0], l[1]
		line("    - endpoints: [\"%s:%s\", \"%s:%s\"]", a.node.name, iface(a.node.kind, a.port), b.node.name, iface(b.node.kind, b.port))
		if n.underlay != "" && a.address.IsValid() {
			line("      ipv4: [%s, %s]", a.address, b.address)
		}
	}
	return out.Bytes()
}

// text writes a name such as null or 1e3, which YAML would not read as text, in quotes.
func text(name string) string {
	out, _ := yaml.Marshal(name) // a string has no error
	return strings.TrimSpace(string(out))
}

// describe says what the network is, as a sentence without its end.
func (n *network) describe() string {
	o := n.options
	var parts []string
	for t, tier := range o.Tiers {
		parts = append(parts, counted(tier.Count, tier.noun(t)))
	}
	slices.Reverse(parts)
	text := strings.Join(parts, ", ")
	switch o.Shape {
	case Ring:
		text = "A ring of " + text
	case Mesh:
		text = "A full mesh of " + text
	case Hub:
		text = "A hub and " + counted(o.Tiers[0].Count-1, "spoke")
	case ISP:
		text = fmt.Sprintf("A provider's network: %s, %s", text, counted(o.Tiers[0].Count*o.Customers, "customer router"))
	default:
		text = "A Clos fabric: " + text
	}
	if len(n.hosts) > 0 {
		text += " and " + counted(len(n.hosts), "host")
	}
	return text
}

// noun is what a router of tier t is called in a sentence.
func (t Tier) noun(i int) string {
	switch t.Name {
	case "":
		return fmt.Sprintf("node of tier %d", i+1)
	case "p":
		return "core router"
	case "pe":
		return "provider edge"
	}
	return t.Name
}

func counted(n int, noun string) string {
	switch {
	case n == 1:
	case noun == "leaf":
		noun = "leaves"
	case strings.HasPrefix(noun, "node of"):
		noun = "nodes" + strings.TrimPrefix(noun, "node")
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
