package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// fabric is a lab of 2 spines, and of leaves with a host each, whose VLANs alternate.
type fabric struct {
	kind, pools, protocols string
	leaves                 int
}

// files are the topology, the fabric file and the checks.
func (f fabric) files() map[string]string {
	var nodes, links strings.Builder
	node := func(name, kind, group string) {
		image := "quay.io/frrouting/frr:10.2.1"
		if group == "red" || group == "blue" {
			image = "ghcr.io/srl-labs/network-multitool:latest"
		}
		fmt.Fprintf(&nodes, "    %s: {kind: %s, group: %s, image: %q}\n", name, kind, group, image)
	}
	for i := 1; i <= 2; i++ {
		node(fmt.Sprintf("spine%d", i), f.kind, "spine")
	}
	for i := 1; i <= f.leaves; i++ {
		node(fmt.Sprintf("leaf%d", i), f.kind, "leaf")
		node(fmt.Sprintf("host%d", i), "linux", []string{"blue", "red"}[i%2])
		for spine := 1; spine <= 2; spine++ {
			fmt.Fprintf(&links, "    - endpoints: [\"leaf%d:eth%d\", \"spine%d:eth%d\"]\n", i, spine, spine, i)
		}
		fmt.Fprintf(&links, "    - endpoints: [\"leaf%d:eth3\", \"host%d:eth1\"]\n", i, i)
	}
	return map[string]string{
		"lab.clab.yml": "name: dc\ntopology:\n  nodes:\n" + nodes.String() + "  links:\n" + links.String(),
		"fabric.yaml": `apiVersion: c9s.dev/v1
kind: Fabric
pools:
  loopbacks: {addresses: [10.0.0.0/24]}
  tunnels: {addresses: [10.0.1.0/24]}
` + f.pools + `members: {match: {groups: [spine, leaf]}, loopbacks: loopbacks}
` + f.protocols + `vteps: {match: {groups: [leaf]}, addresses: tunnels, gatewayMAC: "02:00:5e:00:00:01"}
services:
  - {name: red, vlan: 10, vni: 10010, hosts: {groups: [red]}, gateway: 10.10.10.1/24, routes: [10.10.0.0/16]}
  - {name: blue, vlan: 20, vni: 10020, hosts: {groups: [blue]}, gateway: 10.10.20.1/24, routes: [10.10.0.0/16]}
`,
	}
}

// TestFabric: the routers of a fabric that fabric.yaml describes find each other; hosts reach
// each other in a VLAN and between VLANs, while a spine is dead too; a leaf is added, and only
// the spines restart, or none if they are configured for more ports in advance.
func TestFabric(t *testing.T) {
	long(t)
	for name, test := range map[string]struct {
		fabric
		neighbours, restarts string
		multicast            bool
	}{
		"ebgp": {
			fabric{
				kind: "frr", pools: "  asns: {numbers: [65001-65099]}\n",
				protocols: "underlay: {protocol: ebgp, links: unnumbered, asns: asns, sharedASN: [spine], ports: 8}\noverlay: {protocol: ebgp}\n",
			},
			"  - {nodes: [\"leaf*\"], protocol: bgp, count: 2}\n  - {nodes: [\"spine*\"], protocol: bgp, count: %d}\n", "", false,
		},
		"isis": {
			fabric{
				kind: "frr", pools: "  links: {prefixes: [10.1.0.0/24], length: 31}\n",
				protocols: "underlay: {protocol: isis, links: links, ports: 8}\noverlay: {protocol: ibgp, asn: 65000, reflectors: {groups: [spine]}}\n",
			},
			"  - {nodes: [\"leaf*\"], protocol: isis, count: 2}\n  - {nodes: [\"spine*\"], protocol: isis, count: %[1]d}\n" +
				"  - {nodes: [\"leaf*\"], protocol: bgp, up: [spine1, spine2]}\n  - {nodes: [\"spine1\"], protocol: bgp, up: [leaf1, leaf%[1]d, spine2]}\n", "", false,
		},
		"ospf": {
			fabric{
				kind: "linux", pools: "  links: {prefixes: [10.1.0.0/24], length: 31}\n",
				protocols: "underlay: {protocol: ospf, links: links}\noverlay: {protocol: ibgp, asn: 65000, reflectors: {groups: [spine]}}\n",
			},
			"  - {nodes: [\"leaf*\"], protocol: ospf, count: 2}\n  - {nodes: [\"spine*\"], protocol: ospf, count: %[1]d}\n" +
				"  - {nodes: [\"leaf*\"], protocol: bgp, up: [spine1, spine2]}\n  - {nodes: [\"spine1\"], protocol: bgp, up: [leaf1, leaf%[1]d, spine2]}\n", "spine1 spine2", false,
		},
		"multicast": {
			fabric{
				kind: "frr", pools: "  links: {prefixes: [10.1.0.0/24], length: 31}\n  groups: {addresses: [239.1.0.0/24]}\n  rendezvous: {addresses: [10.0.2.0/30]}\n",
				protocols: "underlay: {protocol: ospf, links: links, ports: 8}\noverlay: {protocol: ibgp, asn: 65000, reflectors: {groups: [spine]}}\n" +
					"bum: {replication: multicast, groups: groups, rendezvous: {match: {groups: [spine]}, addresses: rendezvous}}\n",
			},
			"  - {nodes: [\"leaf*\"], protocol: ospf, count: 2}\n  - {nodes: [\"spine*\"], protocol: ospf, count: %[1]d}\n" +
				"  - {nodes: [\"leaf*\"], protocol: bgp, up: [spine1, spine2]}\n  - {nodes: [\"spine1\"], protocol: bgp, up: [leaf1, leaf%[1]d, spine2]}\n", "", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.leaves = 4
			l := written(t, "dc", test.files())
			dir := filepath.Dir(l.topo)
			write := func(file, text string) {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Cleanup(func() {
				if !t.Failed() {
					return
				}
				for _, node := range []string{"leaf1", "leaf3", "spine2"} {
					for _, command := range []string{"vtysh -c 'show bgp summary' -c 'show bgp l2vpn evpn' -c 'show evpn mac vni all' -c 'show evpn arp-cache vni all' -c 'show bgp ipv4 unicast' -c 'show ip route' -c 'show ip nht' -c 'show bgp nexthop' -c 'show interface brief'", "vtysh -c 'show ip pim neighbor' -c 'show ip mroute' -c 'show ip pim upstream' -c 'show ip msdp sa'", "ip mroute", "ip neigh; ip route; ip nexthop; ip addr; bridge fdb"} {
						out, _ := l.try(context.Background(), "exec", node, "-n", l.ns, "--", "sh", "-c", command)
						t.Logf("%s: %s\n%s", node, command, out)
					}
				}
			})
			began := time.Now()
			l.deploy(t)
			l.ready(t)
			checks := func() string {
				return "apiVersion: c9s.dev/v1\nkind: Test\ntimeout: 2m\nneighbours:\n" + fmt.Sprintf(test.neighbours, test.leaves) + `reachability:
  - {name: one VLAN, from: [host1], to: [10.10.10.3]}
  - {name: large packets, from: [host1], to: [10.10.10.3], size: 9000}
  - {name: between VLANs, from: [host1], to: [10.10.20.2, 10.10.20.3]}
  - {name: and back, from: [host4], to: [10.10.10.2, 10.10.10.3]}
`
			}
			write("lab.test.yaml", checks())
			t.Logf("%s", l.c9s(t, "test", "-t", l.topo, "-n", l.ns))
			if test.multicast {
				l.floods(t, "host1", "host3", "leaf1", "spine1", "spine2")
			}
			t.Logf("the fabric passes its checks %s after the start of deploy", time.Since(began).Round(time.Second))

			for _, spine := range []string{"spine1", "spine2"} {
				each := "for i in 1 2 3 4; do ip link set eth$i %s; done"
				write("dies.yaml", fmt.Sprintf("apiVersion: c9s.dev/v1\nkind: Test\nconvergence:\n"+
					"  - {name: %s dies, from: host1, to: 10.10.10.3, within: 15s, event: {node: %[1]s, command: %q, undo: %q}}\n", spine, fmt.Sprintf(each, "down"), fmt.Sprintf(each, "up")))
				t.Logf("%s", l.c9s(t, "test", filepath.Join(dir, "dies.yaml"), "-t", l.topo, "-n", l.ns))
				l.c9s(t, "test", "-t", l.topo, "-n", l.ns) // until its sessions are back
			}
			l.c9s(t, "stop", "spine1", "-n", l.ns)
			l.reaches(t, "host1", "10.10.10.3")
			l.reaches(t, "host1", "10.10.20.2")
			if test.multicast {
				l.floods(t, "host1", "host3", "leaf1", "spine2")
			}
			l.c9s(t, "start", "spine1", "-n", l.ns)
			l.c9s(t, "test", "-t", l.topo, "-n", l.ns)

			before, values := l.pods(t), l.pools(t)
			test.leaves = 5
			write("lab.clab.yml", test.files()["lab.clab.yml"])
			write("lab.test.yaml", checks()+"  - {name: the new leaf, from: [host5], to: [10.10.10.2, 10.10.20.2]}\n")
			l.deploy(t)
			l.ready(t)
			l.c9s(t, "test", "-t", l.topo, "-n", l.ns)
			after, now := l.pods(t), l.pools(t)
			var restarted []string
			for node, uid := range before {
				if after[node] != uid {
					restarted = append(restarted, node)
				}
			}
			slices.Sort(restarted)
			if got := strings.Join(restarted, " "); got != test.restarts {
				t.Errorf("restarted: %q, want %q", got, test.restarts)
			}
			for owner, value := range values {
				if now[owner] != value {
					t.Errorf("%s had %s and has %s", owner, value, now[owner])
				}
			}
			if len(values) < 40 || len(now) <= len(values) {
				t.Errorf("%d values before, %d after", len(values), len(now))
			}
			if test.multicast {
				l.floods(t, "host1", "host5", "leaf1", "spine1", "spine2")
				l.floods(t, "host5", "host3", "leaf5", "spine1", "spine2")
			}
			l.destroyed(t)
		})
	}
}

// floods waits until a broadcast frame of a host reaches another one just once, and leaves the
// leaf of the first host for a multicast group, once over a link at most: a tree can have branches
// over several spines. The spines are rendezvous points.
func (l *lab) floods(t *testing.T, from, to, leaf string, spines ...string) {
	t.Helper()
	const nobody = "10.10.10.200" // so that no VTEP answers in its place
	listen := func(node, ifname, filter string) func() int {
		seen := make(chan int, 1)
		go func() {
			out, _ := l.try(t.Context(), "exec", node, "-n", l.ns, "--", "timeout", "6", "tcpdump", "-lnni", ifname, filter)
			seen <- strings.Count(out, "who-has "+nobody)
		}()
		return func() int { return <-seen }
	}
	testcluster.Eventually(t, patience, "a broadcast frame crosses once", func() error {
		group := "udp port 4789 and dst net 239.1.0.0/24"
		first, second, far := listen(leaf, "eth1", group), listen(leaf, "eth2", group), listen(to, "eth1", "arp")
		time.Sleep(3 * time.Second)
		_, _ = l.try(t.Context(), "exec", from, "-n", l.ns, "--", "arping", "-b", "-c", "1", "-w", "1", "-I", "eth1", nobody)
		if a, b, c := first(), second(), far(); a > 1 || b > 1 || a+b == 0 || c != 1 {
			return fmt.Errorf("%d frames on eth1 and %d on eth2 of %s, %d at %s", a, b, leaf, c, to)
		}
		return nil
	})
	if out := l.c9s(t, "exec", leaf, "-n", l.ns, "--", "vtysh", "-c", "show ip pim vxlan-groups"); strings.Count(out, "239.1.0.1 ") < 2 || !strings.Contains(out, "ipmr-lo") {
		t.Errorf("groups of %s:\n%s", leaf, out)
	}
	known := 0
	for _, spine := range spines {
		out := l.c9s(t, "exec", spine, "-n", l.ns, "--", "vtysh", "-c", "show ip mroute")
		t.Logf("%s:\n%s", spine, out)
		known += strings.Count(out, "239.1.0.1 ")
	}
	if known < 2 {
		t.Errorf("the spines have no trees")
	}
}

// pods are the UIDs of the lab's Pods, by node.
func (l *lab) pods(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, n := range l.status(t).Nodes {
		out[n.Name] = string(l.pod(t, n.Pod).UID)
	}
	return out
}

// pools are the allocated values of the lab, by pool and owner.
func (l *lab) pools(t *testing.T) map[string]string {
	t.Helper()
	text, err := l.output(t, "pools", l.name, "-n", l.ns, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var pools []struct {
		Name   string
		Owners map[string]string
	}
	if err := json.Unmarshal(text, &pools); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range pools {
		for owner, value := range p.Owners {
			out[p.Name+" "+owner] = value
		}
	}
	return out
}

// TestFreeKept: what a lab keeps for a node that was removed can be freed.
func TestFreeKept(t *testing.T) {
	node := "    %s: {kind: linux, image: \"ghcr.io/srl-labs/network-multitool:latest\"}\n"
	text := func(names ...string) string {
		out := "name: kept\ntopology:\n  nodes:\n"
		for _, n := range names {
			out += fmt.Sprintf(node, n)
		}
		return out
	}
	l := written(t, "kept", map[string]string{"lab.clab.yml": text("a", "b")})
	l.deploy(t)
	if err := os.WriteFile(l.topo, []byte(text("a")), 0o644); err != nil {
		t.Fatal(err)
	}
	l.deploy(t)
	if out := l.c9s(t, "pools", l.name, "-n", l.ns, "-o", "wide"); strings.Count(out, "kept") < 2 {
		t.Errorf("nothing is kept for b:\n%s", out)
	}
	if out := l.c9s(t, "pools", l.name, "-n", l.ns, "--free", "b"); !strings.Contains(out, "values released") {
		t.Errorf("it prints %s", out)
	}
	testcluster.Eventually(t, patience, "no kept values", func() error {
		if out, err := l.try(t.Context(), "pools", l.name, "-n", l.ns, "-o", "wide"); err != nil || strings.Contains(out, "kept") {
			return fmt.Errorf("%v %s", err, out)
		}
		return nil
	})
	l.deploy(t)
	l.ready(t)
	if out := l.c9s(t, "pools", l.name, "-n", l.ns, "-o", "wide"); strings.Contains(out, "kept") {
		t.Errorf("kept again:\n%s", out)
	}
	l.destroyed(t)
}
