package fabric

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestPorts: with ports in advance, the configurations of spines do not depend on the number of
// leaves. A ring of spines still opens its sessions.
func TestPorts(t *testing.T) {
	var out strings.Builder
	for name, protocols := range map[string]string{"ospf": overOSPF, "isis": overISIS, "ebgp": overEBGP, "unnumbered": unnumbered} {
		first, rest, _ := strings.Cut(protocols, "}")
		file := pools + first + ", ports: 8}" + rest + vteps + services
		small, plan := planned(t, clos("frr", 2, 2, eth), file, nil)
		_, large := planned(t, clos("frr", 2, 7, eth), file, &small.Allocations)
		for node, mode := range map[string]string{"spine1": "live", "leaf1": ""} {
			if got := small.Node(node).LinkApplyMode; got != mode {
				t.Errorf("%s: links reach %s %q, want %q", name, node, got, mode)
			}
		}
		configs := map[string]string{}
		for _, n := range plan.Nodes {
			configs[n.Name] = n.Config
		}
		for _, n := range large.Nodes {
			if before, ok := configs[n.Name]; ok && before != n.Config {
				t.Errorf("%s: the configuration of %s has changed:\n%s\n%s", name, n.Name, before, n.Config)
			}
		}
	}
	for _, name := range []string{"ospf", "ebgp", "unnumbered"} {
		protocols := map[string]string{"ospf": overOSPF, "ebgp": overEBGP, "unnumbered": unnumbered}[name]
		first, rest, _ := strings.Cut(protocols, "}")
		topo := strings.Replace(clos("frr", 2, 1, eth), "  links:\n", "  links:\n    - endpoints: [\"spine1:eth2\", \"spine2:eth2\"]\n", 1)
		_, plan := planned(t, topo, pools+first+", ports: 3}"+rest+vteps, nil)
		fmt.Fprintf(&out, "==> %s: spine1\n%s", name, plan.Nodes[1].Config)
	}
	golden(t, filepath.Join("testdata", "ports.txt"), out.String())
}

// TestPortsOutsidePool: a spine opens the session of a link whose addresses are in no range that it
// listens for.
func TestPortsOutsidePool(t *testing.T) {
	topo := strings.Replace(clos("frr", 1, 2, eth), `["leaf2:eth1", "spine1:eth2"]`, "[\"leaf2:eth1\", \"spine1:eth2\"]\n      ipv4: [10.9.9.0/31, 10.9.9.1/31]", 1)
	_, plan := planned(t, topo, pools+strings.Replace(overEBGP, "links: links", "links: links, ports: 4", 1)+vteps, nil)
	config := plan.Nodes[2].Config
	if !strings.Contains(config, "\n neighbor 10.9.9.0 peer-group fabric\n") || strings.Contains(config, "neighbor 10.1.0.") {
		t.Errorf("%s:\n%s", plan.Nodes[2].Name, config)
	}
}
