package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fabricLab writes a fabric of n FRR routers, a tenth of them spines and each leaf with four
// uplinks, to a folder and returns its topology.
func fabricLab(b *testing.B, n int) string {
	var nodes, links strings.Builder
	spines := n / 10
	ports := make([]int, spines)
	for i := range n {
		if i < spines {
			fmt.Fprintf(&nodes, "    spine%d: {group: spine}\n", i)
			continue
		}
		fmt.Fprintf(&nodes, "    leaf%d: {group: leaf}\n", i)
		for up := range 4 {
			s := (i*4 + up) % spines
			ports[s]++
			fmt.Fprintf(&links, "    - endpoints: [\"leaf%d:eth%d\", \"spine%d:eth%d\"]\n", i, up+1, s, ports[s])
		}
	}
	topo := filepath.Join(b.TempDir(), "dc.clab.yml")
	for file, text := range map[string]string{
		topo: "name: dc\nmgmt: {ipv4-subnet: 172.20.0.0/16}\ntopology:\n  defaults: {kind: frr, image: \"quay.io/frrouting/frr:10.2.1\"}\n  nodes:\n" + nodes.String() + "  links:\n" + links.String(),
		filepath.Join(filepath.Dir(topo), "fabric.yaml"): `apiVersion: c9s.dev/v1
kind: Fabric
pools:
  loopbacks: {addresses: [10.0.0.0/16]}
  tunnels: {addresses: [10.1.0.0/16]}
  links: {prefixes: [10.2.0.0/16], length: 31}
members: {match: {groups: [spine, leaf]}, loopbacks: loopbacks}
underlay: {protocol: ospf, links: links}
overlay: {protocol: ibgp, asn: 65000, reflectors: {names: [spine0, spine1]}}
vteps: {match: {groups: [leaf]}, addresses: tunnels, gatewayMAC: "02:00:5e:00:00:01"}
services:
  - {name: red, vlan: 10, vni: 10010, gateway: 10.10.10.1/24}
  - {name: blue, vlan: 20, vni: 10020, gateway: 10.10.20.1/24}
`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return topo
}

// BenchmarkFabric goes from a topology of 1,000 routers and its fabric file to YAML. Beside the
// time it reports the peak of live memory.
func BenchmarkFabric(b *testing.B) {
	topo := fabricLab(b, 1000)
	peak := watchMemory(b)
	for b.Loop() {
		if code := Main([]string{"render", topo, "--planner", "builtin"}, IO{Out: io.Discard, Err: io.Discard}); code != ExitOK {
			b.Fatalf("exit code %d", code)
		}
	}
	b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
}
