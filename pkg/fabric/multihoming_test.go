package fabric

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/lab"
)

const overSegments = "multihoming: {hosts: {names: [\"server*\"]}}\n"

// dual is clos with servers that have a link to each of two leaves.
func dual(kind string, leaves, servers int, ports func(int) string) string {
	nodes, links := "", ""
	for i := 1; i <= servers; i++ {
		nodes += fmt.Sprintf("    server%d: {kind: linux, group: red, image: \"example.net/host:1\"}\n", i)
		for leaf := 1; leaf <= 2; leaf++ {
			links += fmt.Sprintf("    - endpoints: [\"leaf%d:%s\", \"server%d:eth%d\"]\n", leaf, ports(i+2), i, leaf)
		}
	}
	text := clos(kind, 1, leaves, ports)
	return strings.Replace(text, "  links:\n", nodes+"  links:\n", 1) + links
}

// scripts are the commands of a node.
func scripts(n *lab.Node) string {
	var out strings.Builder
	for _, e := range n.Exec {
		fmt.Fprintln(&out, strings.Join(e.Argv, " "))
	}
	return out.String()
}

// TestMultihoming holds the configurations of a leaf, a leaf without a segment and a server for each
// kind that has Ethernet segments.
func TestMultihoming(t *testing.T) {
	for name, k := range kinds {
		if !k.has(FeatureMultihoming) {
			continue
		}
		protocols := overISIS
		if k.has(FeatureOSPF) {
			protocols = overOSPF
		}
		l, plan := planned(t, dual(name, 3, 2, portsOf(name)), pools+protocols+vteps+services+overSegments, nil)
		var out strings.Builder
		for _, n := range plan.Nodes {
			if n.Name == "leaf1" || n.Name == "leaf3" {
				fmt.Fprintf(&out, "==> %s\n%s", n.Name, n.Config)
				if k.script != "" {
					fmt.Fprintf(&out, "==> %s, script\n%s", n.Name, scripts(l.Node(n.Name)))
				}
			}
		}
		fmt.Fprintf(&out, "==> server1\n%s", scripts(l.Node("server1")))
		golden(t, filepath.Join("testdata", "multihoming-"+name+".txt"), out.String())
	}
}

// TestSegments: all VTEPs of a segment have the same identifiers, other segments have others, and a
// server keeps its own when one comes before it.
func TestSegments(t *testing.T) {
	segments := func(plan *Plan) string {
		var out []string
		for _, n := range plan.Nodes {
			for _, s := range n.Segments() {
				out = append(out, fmt.Sprintf("%s/%s=%s,%s,%d", n.Name, s.Host, s.SystemMAC(), s.ESI(), len(s.Ports)))
			}
		}
		return strings.Join(out, "\n")
	}
	file := pools + overOSPF + vteps + services + overSegments
	topo := dual("frr", 2, 2, eth)
	small, plan := planned(t, topo, file, nil)
	const want = `leaf1/server1=02:c9:00:00:00:01,03:02:c9:00:00:00:01:00:00:01,1
leaf1/server2=02:c9:00:00:00:02,03:02:c9:00:00:00:02:00:00:02,1
leaf2/server1=02:c9:00:00:00:01,03:02:c9:00:00:00:01:00:00:01,1
leaf2/server2=02:c9:00:00:00:02,03:02:c9:00:00:00:02:00:00:02,1`
	if got := segments(plan); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	larger := strings.Replace(topo, "    server1:", "    server0: {kind: linux, group: red, image: \"example.net/host:1\"}\n    server1:", 1) +
		"    - endpoints: [\"leaf1:eth9\", \"server0:eth1\"]\n    - endpoints: [\"leaf2:eth9\", \"server0:eth2\"]\n"
	_, grown := planned(t, larger, file, &small.Allocations)
	if got := segments(grown); !strings.Contains(got, "leaf1/server0=02:c9:00:00:00:03,") || !strings.Contains(got, "leaf1/server1=02:c9:00:00:00:01,") {
		t.Errorf("after growth:\n%s", got)
	}
}

// TestBundle: the address that the topology sets on one link of a server, or the one that the
// service has for it, is that of its bundle.
func TestBundle(t *testing.T) {
	file := pools + overOSPF + vteps + services + overSegments
	topo := dual("frr", 2, 1, eth)
	l, _ := planned(t, topo, file, nil)
	n := l.Node("server1")
	if got := scripts(n); !strings.Contains(got, "ip addr replace 10.10.10.3/24 dev bond0") || !strings.Contains(got, "ip route replace 10.10.0.0/16 via 10.10.10.1 dev bond0") {
		t.Error(got)
	}
	if strings.Index(scripts(n), "ip link add bond0") > strings.Index(scripts(n), "ip route replace") {
		t.Error("the route comes before the bundle")
	}
	for _, e := range n.Endpoints {
		if e.IPv4.IsValid() {
			t.Errorf("%s has address %s", e.Interface, e.IPv4)
		}
	}
	written := strings.Replace(topo, "    - endpoints: [\"leaf2:eth3\", \"server1:eth2\"]\n", `    - type: veth
      endpoints:
        - {node: leaf2, interface: eth3}
        - {node: server1, interface: eth2, ipv4: 10.10.10.77/24}
`, 1)
	l, _ = planned(t, written, file, nil)
	if got := scripts(l.Node("server1")); !strings.Contains(got, "ip addr replace 10.10.10.77/24 dev bond0") || strings.Count(got, "ip addr replace") != 1 {
		t.Error(got)
	}
}

// TestBadMultihoming: what is wrong with multihoming.
func TestBadMultihoming(t *testing.T) {
	all := pools + overOSPF + vteps + services
	topo := dual("frr", 2, 1, eth)
	line := strings.Count(all, "\n") + 1
	for name, c := range map[string]struct{ topo, file, want string }{
		"no services":   {topo, pools + overOSPF + vteps + overSegments, "multihomed hosts need a service"},
		"empty":         {topo, all + "multihoming: {}\n", "multihoming has no hosts"},
		"nothing":       {topo, all + "multihoming: {hosts: {names: [nobody]}}\n", "hosts of multihoming matches no node of the topology"},
		"one link":      {topo, all + "multihoming: {hosts: {names: [host2]}}\n", `multihomed node "host2" has links to one VTEP of service "blue" only`},
		"no link":       {strings.Replace(topo, "  links:\n", "    spare: {kind: linux, image: \"example.net/host:1\"}\n  links:\n", 1), all + "multihoming: {hosts: {names: [spare]}}\n", `multihomed node "spare" has no link to a VTEP of a service`},
		"a member":      {topo, all + "multihoming: {hosts: {names: [leaf1]}}\n", `multihomed node "leaf1" is a member of the fabric`},
		"one VTEP":      {strings.Replace(topo, `"leaf2:eth3"`, `"leaf1:eth7"`, 1), all + overSegments, `multihomed node "server1" has links to one VTEP of service "red" only`},
		"two services":  {topo, strings.Replace(all, "hosts: {groups: [blue]}", "match: {names: [leaf2]}, hosts: {names: [server1]}", 1) + overSegments, "both have port"},
		"a bridge":      {strings.Replace(topo, `server1: {kind: linux, group: red, image: "example.net/host:1"}`, "server1: {kind: bridge, group: red}", 1), all + overSegments, "cannot bundle its links by LACP"},
		"kind":          {dual("cisco_n9kv", 2, 1, portsOf("cisco_n9kv")), all + overSegments, "the fabric configuration of kind cisco_n9kv does not support multihoming"},
		"two kinds":     {strings.NewReplacer("leaf2: {kind: frr", "leaf2: {kind: nokia_srlinux", `"leaf2:eth`, `"leaf2:e1-`).Replace(topo), strings.Replace(all, ", gateway: 10.10.10.1/24, routes: [10.10.0.0/16]", "", 1) + overSegments, `multihomed node "server1" has links to "leaf1" of kind frr and to "leaf2" of kind nokia_srlinux, whose LACP keys differ`},
		"two addresses": {strings.NewReplacer(`["leaf1:eth3", "server1:eth1"]`, `["leaf1:eth3", "server1:eth1"]`+"\n      ipv4: [\"\", 10.10.10.7/24]", `["leaf2:eth3", "server1:eth2"]`, `["leaf2:eth3", "server1:eth2"]`+"\n      ipv4: [\"\", 10.10.10.8/24]").Replace(topo), all + overSegments, `several links of multihomed node "server1" have addresses`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, diags := compiled(t, c.topo, c.file, nil)
			for _, d := range diags {
				if strings.Contains(d.Message, c.want) {
					if at := d.Pos.Line; name != "two addresses" && name != "two services" && at != line && name != "no services" {
						t.Errorf("%s: line %d, want %d", d, at, line)
					}
					return
				}
			}
			t.Errorf("got %v, want %q", diags, c.want)
		})
	}
}

// TestMultihomingLoads: FRR's own parser accepts the configuration of a leaf with segments.
func TestMultihomingLoads(t *testing.T) {
	vtysh, err := exec.LookPath("vtysh")
	if err != nil {
		t.Skip("vtysh is not installed (apt-get install frr): FRR's parser is not asked")
	}
	_, plan := planned(t, dual("frr", 2, 1, eth), pools+overOSPF+vteps+services+overSegments, nil)
	file := filepath.Join(t.TempDir(), "frr.conf")
	for _, n := range plan.Nodes {
		for text, ok := range map[string]bool{n.Config: true, n.Config + "evpn mh no-such-command\n": false} {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(vtysh, "--dryrun", "--inputfile", file).CombinedOutput(); (err == nil) != ok {
				t.Errorf("%s, valid %t: %v\n%s", n.Name, ok, err, out)
			}
		}
	}
}
