package generate

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the golden files")

func dc(leaves, spines, supers, hosts int) Options {
	o := Options{Name: "dc", Shape: Clos, Hosts: hosts, Tiers: []Tier{{Name: "leaf", Count: leaves, Kind: KindFRR}, {Name: "spine", Count: spines, Kind: KindFRR}}}
	if supers > 0 {
		o.Tiers = append(o.Tiers, Tier{Name: "superspine", Count: supers, Kind: KindFRR})
	}
	return o
}

func shaped(shape string, n, hosts int) Options {
	return Options{Name: shape, Shape: shape, Hosts: hosts, Tiers: []Tier{{Name: "router", Count: n, Kind: KindFRR}}}
}

func isp(edges, core, customers, hosts int) Options {
	return Options{Name: "isp", Shape: ISP, Hosts: hosts, Customers: customers, Tiers: []Tier{{Name: "pe", Count: edges, Kind: KindFRR}, {Name: "p", Count: core, Kind: KindFRR}}}
}

// TestNames: YAML reads the names of the lab and of types as the texts that they are.
func TestNames(t *testing.T) {
	for _, name := range []string{"null", "true", "1", "0x10", "1e3", "2024-01-01", "dc", "a-1"} {
		o := dc(1, 1, 0, 0)
		o.Name, o.Tiers[0].Type = name, `"`+name
		data, err := Topology(o)
		var topo struct {
			Name     any
			Topology struct{ Nodes map[string]struct{ Type any } }
		}
		if err = errors.Join(err, yaml.Unmarshal(data, &topo)); err != nil || topo.Name != name || topo.Topology.Nodes["leaf1"].Type != `"`+name {
			t.Errorf("%s: %+v, %v", name, topo, err)
		}
	}
}

// TestGolden holds what people read: all files of small networks.
func TestGolden(t *testing.T) {
	srl := dc(2, 1, 0, 0)
	srl.Tiers[0].Kind, srl.Tiers[0].Type = "nokia_srlinux", "ixrd3"
	for name, o := range map[string]Options{
		"clos": dc(2, 2, 1, 2), "ring": shaped(Ring, 3, 0), "hub": shaped(Hub, 3, 1), "isp": isp(2, 3, 1, 1), "mixed": srl,
		"tiers": {Name: "tiers", Shape: Clos, Tiers: []Tier{{Count: 2, Kind: "nokia_srlinux", Type: "ixrd3"}, {Count: 1, Kind: "cisco_c8000"}}},
	} {
		files, err := Files(o)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for _, f := range files {
			fmt.Fprintf(&out, "==> %s\n%s", f.Path, f.Data)
		}
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("%s differs; run with -update and look at the change:\n%s", path, out.String())
		}
	}
}

// TestLinks: in networks of every shape, each interface has one link, no name or address is used
// twice, and the ends of a link to a host are the two addresses of a subnet.
func TestLinks(t *testing.T) {
	for want, o := range map[int]Options{
		700*8 + 8*2 + 700*3:           dc(700, 8, 2, 3),
		201:                           dc(1, 1, 0, 200),
		50 + 50:                       shaped(Ring, 50, 1),
		40*39/2 + 40:                  shaped(Mesh, 40, 1),
		299 + 2*299:                   shaped(Hub, 300, 2),
		10 + 2*300 + 2*300 + 5*2*300:  isp(300, 10, 2, 5),
		1 + 2*1 + 3:                   isp(1, 2, 3, 0),
		0 + 1*maxEdges + maxEdges + 0: isp(maxEdges, 1, 1, 0),
	} {
		n := build(o)
		if err := o.check(); err != nil || len(n.links) != want {
			t.Errorf("%s: %d links, want %d, %v", o.Shape, len(n.links), want, err)
		}
		names, addresses, used := map[string]bool{}, map[netip.Addr]bool{}, map[string]bool{}
		for _, x := range slices.Concat(n.nodes, n.hosts) {
			if names[x.name] {
				t.Errorf("%s: two nodes are called %s", o.Shape, x.name)
			}
			names[x.name] = true
		}
		for _, l := range n.links {
			for i, e := range l {
				key := fmt.Sprintf("%s %d", e.node.name, e.port)
				if used[key] || e.node.peers[e.port] != l[1-i].node || !names[e.node.name] {
					t.Errorf("%s: port %s", o.Shape, key)
				}
				used[key] = true
			}
			a, b := l[0].address, l[1].address
			if !a.IsValid() && !b.IsValid() && !l[1].node.host {
				continue
			}
			if !l[1].node.host || a.Masked() != b.Masked() || a.Addr().Next() != b.Addr() || addresses[a.Addr()] || addresses[b.Addr()] || !netip.MustParsePrefix("10.128.0.0/9").Contains(b.Addr()) {
				t.Errorf("%s: %s of %s and %s of %s", o.Shape, a, l[0].node.name, b, l[1].node.name)
			}
			addresses[a.Addr()], addresses[b.Addr()] = true, true
		}
	}
}

// TestGrowth: a network that grows keeps the names of what was there, and the addresses of hosts.
func TestGrowth(t *testing.T) {
	for _, o := range [][2]Options{{dc(4, 2, 0, 1), dc(9, 3, 2, 4)}, {isp(2, 3, 1, 1), isp(4, 5, 3, 2)}} {
		after := map[string]netip.Prefix{}
		for _, l := range build(o[1]).links {
			after[l[1].node.name] = l[1].address
		}
		for _, l := range build(o[0]).links {
			if x := l[1]; x.node.host && after[x.node.name] != x.address {
				t.Errorf("%s had %s and has %s", x.node.name, x.address, after[x.node.name])
			}
		}
	}
}

// TestBad: everything that is wrong is reported at once.
func TestBad(t *testing.T) {
	many := func(n int) []Tier { return slices.Repeat([]Tier{{Count: 1, Kind: "x"}}, n) }
	for want, o := range map[string]Options{
		"the name \"A_b\": use at most 40 lower-case letters, digits and dashes, starting and ending with a letter or digit\n0 nodes of tier 2: use 1 to 8000\n-1 hosts for each router: use 0 to 200": {
			Name: "A_b", Shape: Clos, Hosts: -1, Tiers: []Tier{{Count: 1, Kind: "x"}, {Kind: "x"}}},
		"the shape \"star\": use one of clos, ring, mesh, hub, isp":                                 {Name: "a", Shape: "star", Tiers: many(1)},
		"1 node of tier 1: use 3 to 8000":                                                           {Name: "a", Shape: Ring, Tiers: many(1)},
		"1 node of tier 1: use 2 to 8000\n1 node of tier 2: use 2 to 8000\n2 tiers: a mesh has one": {Name: "a", Shape: Mesh, Tiers: many(2)},
		"0 tiers: a clos has one or more":                                                           {Name: "a", Shape: Clos},
		"9 tiers: use up to 8":                                                                      {Name: "a", Shape: Clos, Tiers: many(9)},
		"1001 provider edges: use 1 to 1000\n17 customers for each edge: use 0 to 16\nthe network has 35036 nodes: use at most 10000": isp(1001, 1, 17, 1),
		"1 tiers: an isp has two":                        {Name: "a", Shape: ISP, Tiers: many(1)},
		"tier 1 has no kind":                             {Name: "a", Shape: Clos, Tiers: []Tier{{Count: 1}}},
		"the network has 20100 nodes: use at most 10000": {Name: "a", Shape: Clos, Hosts: 200, Tiers: []Tier{{Count: 100, Kind: "x"}}},
	} {
		if _, err := Files(o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := Topology(o); err == nil {
			t.Errorf("a topology with %s", want)
		}
	}
}

// TestTopologyAlone names no file that is not written.
func TestTopologyAlone(t *testing.T) {
	text, err := Topology(dc(2, 1, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"fabric.yaml", "ipv4"} {
		if strings.Contains(string(text), bad) {
			t.Errorf("it has %q:\n%s", bad, text)
		}
	}
}

// TestChecksWithoutHosts: routers of a tier that shares an AS number reject each other's loopbacks, so
// only those of the first tier are checked.
func TestChecksWithoutHosts(t *testing.T) {
	n := build(dc(2, 2, 0, 0))
	n.underlay = "ebgp"
	text := string(n.checks())
	if want := "    to: [10.0.128.1, 10.0.128.2]\n"; !strings.Contains(text, want) || !strings.Contains(text, "from: [leaf1, leaf2, spine1, spine2]") {
		t.Errorf("there is no %q in\n%s", want, text)
	}
}

// TestLargeNetwork: the management network has room for all nodes.
func TestLargeNetwork(t *testing.T) {
	text, err := Topology(dc(150, 2, 0, 1))
	if err != nil || !strings.Contains(string(text), "ipv4-subnet: 172.20.0.0/16") || !strings.Contains(string(text), "ipv6-subnet: 3fff:172:20:20::/64") {
		t.Errorf("%v\n%s", err, text)
	}
}
