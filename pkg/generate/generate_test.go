package generate

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func fabric(leaves, spines, supers, hosts int) Options {
	o := Options{Name: "dc", Shape: Clos, Hosts: hosts, Tiers: []Tier{{Name: "leaf", Count: leaves, Kind: KindFRR}, {Name: "spine", Count: spines, Kind: KindFRR}}}
	if supers > 0 {
		o.Tiers = append(o.Tiers, Tier{Name: "superspine", Count: supers, Kind: KindFRR})
	}
	return o
}

func shaped(shape string, n, hosts int) Options {
	return Options{Name: shape, Shape: shape, Hosts: hosts, Tiers: []Tier{{Name: "router", Count: n, Kind: KindFRR}}}
}

// TestGolden holds what people read: all files of small networks.
func TestGolden(t *testing.T) {
	for name, o := range map[string]Options{
		"clos": fabric(2, 2, 1, 2), "ring": shaped(Ring, 3, 0), "hub": shaped(Hub, 3, 1),
		"tiers": {Name: "tiers", Shape: Clos, Tiers: []Tier{{Count: 2, Kind: "nokia_srlinux", Type: "ixrd3"}, {Count: 1, Kind: "cisco_xrd"}}},
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

// TestNumbers: in networks of every shape, each router has an address of its own that no LAN
// contains, hosts have addresses of their router's LAN, and each interface has one link.
func TestNumbers(t *testing.T) {
	for _, o := range []Options{fabric(700, 8, 2, 3), fabric(1, 1, 0, 200), shaped(Ring, 50, 1), shaped(Mesh, 40, 1), shaped(Hub, 300, 2)} {
		n := build(o)
		owner := map[netip.Addr]string{}
		own := func(a netip.Addr, name string) {
			if !a.IsValid() || owner[a] != "" {
				t.Errorf("%s: %s and %s both have %s", o.Shape, owner[a], name, a)
			}
			owner[a] = name
		}
		for _, x := range n.nodes {
			own(x.loopback, x.name)
			if x.lan.IsValid() {
				own(x.lan.Addr(), x.name)
			}
		}
		for _, h := range n.hosts {
			own(h.lan.Addr(), h.name)
			if router := h.ports[0].peer; router.lan.Masked() != h.lan.Masked() || router.lan.Contains(router.loopback) {
				t.Errorf("%s is in %s, and its router %s has %s", h.name, h.lan, router.name, router.lan)
			}
		}
		used := map[end]bool{}
		for _, l := range n.links {
			for i, e := range l {
				if used[e] {
					t.Errorf("%s: port %d of %s has two links", o.Shape, e.port, e.node.name)
				}
				used[e] = true
				if p := e.node.ports[e.port]; p.peer != l[1-i].node || p.far != l[1-i].port {
					t.Errorf("%s: port %d of %s does not know its peer", o.Shape, e.port, e.node.name)
				}
			}
		}
		if want := map[string]int{Ring: 50 + 50, Mesh: 40*39/2 + 40, Hub: 299 + 2*299}[o.Shape]; want > 0 && len(n.links) != want {
			t.Errorf("%s: %d links, want %d", o.Shape, len(n.links), want)
		}
	}
}

// TestASNumbers: routers of the first tier have numbers of their own, those of each further tier
// share one.
func TestASNumbers(t *testing.T) {
	seen := map[uint32]int{}
	for _, x := range build(fabric(2000, 4, 2, 0)).nodes {
		seen[x.asn]++
	}
	if len(seen) != 2002 || seen[64512] != 4 || seen[64513] != 2 {
		t.Errorf("%d numbers, %d spines and %d super-spines share one", len(seen), seen[64512], seen[64513])
	}
	for number, n := range seen {
		if private := number >= 64512 && number <= 65534 || number >= 4_200_000_000 && number <= 4_294_967_294; !private || n > 4 {
			t.Errorf("AS %d, used %d times", number, n)
		}
	}
}

// TestGrowth: a fabric that grows keeps the names, loopbacks, LANs and AS numbers of what was there.
func TestGrowth(t *testing.T) {
	before, after := build(fabric(4, 2, 0, 1)), build(fabric(9, 3, 2, 4))
	for _, x := range slices.Concat(before.nodes, before.hosts) {
		same := slices.ContainsFunc(slices.Concat(after.nodes, after.hosts), func(y *node) bool {
			return x.name == y.name && x.asn == y.asn && x.loopback == y.loopback && x.lan == y.lan
		})
		if !same {
			t.Errorf("%s has changed", x.name)
		}
	}
}

// TestBad: everything that is wrong is reported at once.
func TestBad(t *testing.T) {
	many := func(n int) []Tier { return slices.Repeat([]Tier{{Count: 1, Kind: "x"}}, n) }
	for want, o := range map[string]Options{
		"the name \"A_b\": use at most 40 lower-case letters, digits and dashes\n0 nodes in tier 2: use 1 to 8000\n-1 hosts for each router: use 0 to 200": {
			Name: "A_b", Shape: Clos, Hosts: -1, Tiers: []Tier{{Count: 1, Kind: "x"}, {Kind: "x"}}},
		"the shape \"star\": use one of clos, ring, mesh, hub":                                        {Name: "a", Shape: "star", Tiers: many(1)},
		"1 nodes in tier 1: use 3 to 8000":                                                            {Name: "a", Shape: Ring, Tiers: many(1)},
		"1 nodes in tier 1: use 2 to 8000\n1 nodes in tier 2: use 2 to 8000\n2 tiers: a mesh has one": {Name: "a", Shape: Mesh, Tiers: many(2)},
		"0 tiers: a clos has one or more":                                                             {Name: "a", Shape: Clos},
		"9 tiers: use up to 8":                                                                        {Name: "a", Shape: Clos, Tiers: many(9)},
		"tier 1 has no kind":                                                                          {Name: "a", Shape: Clos, Tiers: []Tier{{Count: 1}}},
		"the network has 20100 nodes: use at most 10000":                                              {Name: "a", Shape: Clos, Hosts: 200, Tiers: []Tier{{Count: 100, Kind: "x"}}},
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
	text, err := Topology(fabric(2, 1, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"startup", "exec"} {
		if strings.Contains(string(text), bad) {
			t.Errorf("it has %q:\n%s", bad, text)
		}
	}
}

// TestChecksWithoutHosts: routers of a tier that shares an AS number reject each other's loopbacks, so
// only those of the first tier are checked.
func TestChecksWithoutHosts(t *testing.T) {
	text := string(build(fabric(2, 2, 0, 0)).checks())
	if want := "    to: [10.0.0.1, 10.0.0.2]\n"; !strings.Contains(text, want) || !strings.Contains(text, "from: [leaf1, leaf2, spine1, spine2]") {
		t.Errorf("there is no %q in\n%s", want, text)
	}
}
