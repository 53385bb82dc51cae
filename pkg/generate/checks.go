package generate

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/fabric"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// manyHosts is how many hosts reach one another in the checks; of more, the first and the last
// reach all.
const manyHosts = 20

// loopback is the loopback of n.ends[i] in a network without hosts. It is of the upper half of
// the pool: c9s allocates the loopbacks of the other routers from the lower end, so a larger
// network never takes one of theirs.
func loopback(i int) netip.Addr { return plus(netip.MustParseAddr("10.0.128.1"), i) }

// checks writes the file for c9s test: the number of each router's neighbours, and which
// addresses must be reachable.
func (n *network) checks() []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line("# c9s test runs these checks.")
	line("apiVersion: c9s.dev/v1")
	line("kind: Test")
	line("timeout: 2m # protocols need their time after a start")
	line("basics: [links, management, names]")
	if lines := n.neighbours(); len(lines) > 0 {
		line("neighbours:")
		for _, text := range lines {
			line("  - %s", text)
		}
	}
	from, name := n.nodes, "loopbacks"
	if n.options.Shape == ISP {
		from = n.ends // customers know nothing of the provider's loopbacks
	}
	var to []string
	for _, l := range n.links {
		if l[1].node.host {
			to = append(to, l[1].address.Addr().String())
		}
	}
	if len(n.hosts) > 0 {
		from, name = n.hosts, "hosts"
	} else {
		// Nodes of a further tier share an AS number, so they reject each other's paths.
		for i := range n.ends {
			to = append(to, loopback(i).String())
		}
	}
	if len(from) > manyHosts {
		from = []*node{from[0], from[len(from)-1]}
	}
	line("reachability:")
	line("  - name: %s", name)
	line("    from: [%s]", strings.Join(nodeNames(from), ", "))
	line("    to: [%s]", strings.Join(to, ", "))
	return out.Bytes()
}

// neighbours are checks of routers with as many neighbours, for kinds whose neighbours c9s reads.
func (n *network) neighbours() []string {
	type check struct {
		protocol string
		count    int
	}
	nodes := map[check][]string{}
	for _, x := range n.nodes {
		kind, _ := kinds.Builtin().Lookup(x.kind)
		for protocol, count := range n.sessions(x) {
			if protocol == fabric.EBGP {
				protocol = "bgp"
			}
			if kind.Neighbours[protocol] != nil {
				c := check{protocol, count}
				nodes[c] = append(nodes[c], x.name)
			}
		}
	}
	var out []string
	for _, c := range slices.SortedFunc(maps.Keys(nodes), func(a, b check) int {
		return strings.Compare(fmt.Sprintf("%s %6d", a.protocol, a.count), fmt.Sprintf("%s %6d", b.protocol, b.count))
	}) {
		out = append(out, fmt.Sprintf("{nodes: [%s], protocol: %s, count: %d}", strings.Join(nodes[c], ", "), c.protocol, c.count))
	}
	return out
}
