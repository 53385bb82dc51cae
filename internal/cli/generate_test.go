package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/pkg/fabric"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// TestGenerate: what is generated renders as it is, and nothing that exists is replaced unasked.
func TestGenerate(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, errs, code := run(t, "generate", "--name", "dc", "--super-spines", "2", "--hosts-per-leaf", "2"); code != ExitOK || errs != "dc: 3 files written\nnext: c9s deploy dc/dc.clab.yml --test\n" {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if out, errs, code := run(t, "render", "dc", "--planner", "builtin"); code != ExitOK || errs != "" || strings.Count(out, "\nkind: Deployment\n") != 4+2+2+8+1 {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	topo := filepath.Join("dc", "dc.clab.yml")
	for _, file := range []string{topo, filepath.Join("dc", "fabric.yaml")} {
		if err := os.WriteFile(file, []byte("mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, errs, code := run(t, "generate", "--name", "dc"); code != ExitFailure || !strings.Contains(errs, "files exist already: "+topo+", dc/dc.test.yaml, dc/fabric.yaml") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if data, err := os.ReadFile(topo); err != nil || string(data) != "mine\n" {
		t.Errorf("the file is %q, %v", data, err)
	}
	if _, errs, code := run(t, "generate", "--name", "dc", "--force"); code != ExitOK {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if out, errs, code := run(t, "validate", "dc", "--planner", "builtin"); code != ExitOK || !strings.Contains(out+errs, "10 nodes, 12 links") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestGenerateFabrics: every shape of every kind that a fabric can configure, with each of its
// underlays, is valid, renders to the same bytes twice, and has the neighbours that its checks
// expect.
func TestGenerateFabrics(t *testing.T) {
	t.Chdir(t.TempDir())
	shapes := map[string][]string{
		"leaves": {"--leaves", "2"}, "supers": {"--leaves", "2", "--super-spines", "1", "--hosts-per-leaf", "2"},
		"bare": {"--leaves", "2", "--hosts-per-leaf", "0"}, "one": {"--leaves", "1", "--spines", "1"},
		"ring": {"--shape", "ring", "--nodes", "3"}, "mesh": {"--shape", "mesh", "--nodes", "3"}, "hub": {"--shape", "hub", "--nodes", "3"},
		"isp": {"--shape", "isp", "--core", "3", "--edges", "2"}, "small": {"--shape", "isp", "--core", "1", "--edges", "1", "--customers-per-edge", "2"},
		"core":  {"--shape", "isp", "--core", "3", "--edges", "2", "--customers-per-edge", "0"},
		"sites": {"--shape", "isp", "--core", "2", "--edges", "2", "--hosts-per-leaf", "0"},
	}
	tried := map[string]int{}
	for _, kind := range fabric.Kinds() {
		for _, underlay := range []string{"", fabric.EBGP, fabric.ISIS, fabric.OSPF} {
			for name, shape := range shapes {
				args := append([]string{"generate", "--name", name, "--kind", kind, "--underlay", underlay, "--image", kind + "=example.net/frr-" + kind + ":1"}, shape...)
				if err := os.RemoveAll(name); err != nil {
					t.Fatal(err)
				}
				_, errs, code := run(t, args...)
				title := fmt.Sprintf("%s of %s over %q", name, kind, underlay)
				if code == ExitFailure && underlay != "" && strings.Contains(errs, "the underlay ") || code == ExitOK && strings.Contains(errs, "1 file written") {
					continue // not a feature of the kind
				}
				if code != ExitOK {
					t.Errorf("%s: exit code %d\n%s", title, code, errs)
					continue
				}
				tried[kind]++
				topo := filepath.Join(name, name+".clab.yml")
				if out, errs, code := run(t, "validate", topo, "--planner", "builtin"); code != ExitOK || !strings.Contains(out+errs, "; 0 errors, 0 warnings") {
					t.Errorf("%s: exit code %d\n%s", title, code, errs)
				}
				first, errs, code := run(t, "render", topo, "--planner", "builtin")
				if code != ExitOK {
					t.Errorf("%s: exit code %d\n%s", title, code, errs)
				}
				if again, _, _ := run(t, "render", topo, "--planner", "builtin"); again != first {
					t.Errorf("%s: it renders to other bytes the second time", title)
				}
				expectedNeighbours(t, title, topo)
			}
		}
	}
	for kind, least := range map[string]int{"frr": 29, "linux": 29, "nokia_srlinux": 21, "arista_ceos": 21, "vyosnetworks_vyos": 28, "sonic-vs": 14} {
		if tried[kind] < least {
			t.Errorf("%s: only %d networks", kind, tried[kind])
		}
	}
}

// TestGenerateGrows: nodes of a network keep their addresses and AS numbers if a larger one of
// the same name is rendered over it, as a deploy does with those of the running lab.
func TestGenerateGrows(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, sizes := range map[string][2][]string{
		"fabric": {{"--leaves", "3"}, {"--leaves", "6", "--spines", "3", "--super-spines", "2", "--hosts-per-leaf", "3"}},
		"bare":   {{"--leaves", "3", "--hosts-per-leaf", "0"}, {"--leaves", "6", "--hosts-per-leaf", "0"}},
		"many":   {{"--leaves", "3", "--underlay", "ospf"}, {"--leaves", "110", "--underlay", "ospf"}},
		"ring":   {{"--shape", "ring", "--nodes", "3"}, {"--shape", "ring", "--nodes", "6"}},
		"mesh":   {{"--shape", "mesh", "--nodes", "3"}, {"--shape", "mesh", "--nodes", "5"}},
		"hub":    {{"--shape", "hub", "--nodes", "3", "--hosts-per-leaf", "0"}, {"--shape", "hub", "--nodes", "6", "--hosts-per-leaf", "0"}},
		"isp":    {{"--shape", "isp", "--core", "3", "--edges", "2"}, {"--shape", "isp", "--core", "5", "--edges", "4", "--customers-per-edge", "3"}},
	} {
		var before map[string]map[string]string
		for _, size := range sizes {
			for _, args := range [][]string{append([]string{"generate", "--name", name, "--force"}, size...), {"render", name, "--planner", "builtin", "-o", filepath.Join(name, "manifests")}} {
				if _, errs, code := run(t, args...); code != ExitOK {
					t.Fatalf("%v: exit code %d\n%s", args, code, errs)
				}
			}
			state, err := readFolder(filepath.Join(name, "manifests"))
			if err != nil {
				t.Fatal(err)
			}
			pools, kept := state.allocations.Pools, 0
			for pool, values := range before {
				for owner, v := range values {
					if strings.Contains(owner, ":") {
						continue // an interface, which can get another name
					}
					if kept++; pools[pool][owner] != v {
						t.Errorf("%s: %s of %s was %s and is %q", name, pool, owner, v, pools[pool][owner])
					}
				}
			}
			if before != nil && kept < 12 {
				t.Errorf("%s: only %d values of nodes", name, kept)
			}
			before = pools
		}
	}
}

// expectedNeighbours holds the checks of a network against the plan of its fabric.
func expectedNeighbours(t *testing.T, title, topo string) {
	t.Helper()
	out, errs, code := run(t, "fabric", "show", "-t", topo, "-o", "json")
	var plan fabric.Plan
	if err := json.Unmarshal([]byte(out), &plan); code != ExitOK || err != nil {
		t.Fatalf("%s: exit code %d, %v\n%s", title, code, err, errs)
	}
	text, err := os.ReadFile(strings.TrimSuffix(topo, ".clab.yml") + ".test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var checks struct {
		Neighbours []struct {
			Nodes    []string
			Protocol string
			Count    int
		}
		Reachability []struct{ From, To []string }
	}
	if err := yaml.Unmarshal(text, &checks); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, c := range checks.Neighbours {
		for _, node := range c.Nodes {
			got[node+" "+c.Protocol] = c.Count
		}
	}
	want, addresses := map[string]int{}, map[string]bool{}
	for _, n := range plan.Nodes {
		kind, _ := kinds.Builtin().Lookup(n.Kind)
		add := func(protocol string) {
			if kind.Neighbours[protocol] != nil {
				want[n.Name+" "+protocol]++
			}
		}
		for _, l := range n.Links {
			if l.Session {
				add("bgp")
			} else {
				add(plan.Underlay)
			}
		}
		for range n.Peers {
			add("bgp")
		}
		addresses[n.RouterID.String()] = true
		for _, p := range n.Access {
			addresses[p.Address.Addr().Next().String()] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: neighbours of the plan and of the checks: -want +got\n%s", title, diff)
	}
	if len(checks.Reachability) != 1 || len(checks.Reachability[0].From) == 0 || len(checks.Reachability[0].To) == 0 {
		t.Fatalf("%s: reachability %v", title, checks.Reachability)
	}
	for _, to := range checks.Reachability[0].To {
		if !addresses[to] {
			t.Errorf("%s: nothing has the address %s", title, to)
		}
	}
}

// TestGenerateKinds: nodes of every kind have interfaces that the kind accepts. What else they
// need (an image, a type) is reported by validate, and is for the user to add.
func TestGenerateKinds(t *testing.T) {
	dir := t.TempDir()
	tried := 0
	for _, kind := range kinds.Builtin().All() {
		if kind.Refused != "" || kind.RootNamespace {
			continue
		}
		file := filepath.Join(dir, kind.Name+".clab.yml")
		if _, errs, code := run(t, "generate", "--nodes", "3:"+kind.Name+",2", "--kind", kind.Name, "--file", file); code != ExitOK {
			t.Errorf("%s: exit code %d\n%s", kind.Name, code, errs)
			continue
		}
		tried++
		if _, errs, _ := run(t, "validate", file, "--planner", "builtin"); strings.Contains(errs, "interface-name") {
			t.Errorf("%s: %s", kind.Name, errs)
		}
	}
	if tried < 50 {
		t.Errorf("only %d kinds were tried", tried)
	}
}

func TestGenerateUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--shape", "mesh"}, ExitUsage, "--shape mesh needs --nodes, the number of routers"},
		{[]string{"--kind", "nosuch"}, ExitUsage, `--kind: "nosuch" is not a kind`},
		{[]string{"--nodes", "x"}, ExitUsage, `--nodes: "x": use NUMBER[:KIND[:TYPE]]`},
		{[]string{"--nodes", "2:nosuch"}, ExitUsage, `--nodes: "nosuch" is not a kind`},
		{[]string{"--image", "nosuch=x"}, ExitUsage, `--image: "nosuch" is not a kind`},
		{[]string{"--nodes", "2", "--leaves", "3"}, ExitUsage, "none of the others can be"},
		{[]string{"--shape", "isp", "--nodes", "4"}, ExitUsage, "--shape isp takes --core, --edges and --customers-per-edge in place of --nodes"},
		{[]string{"--shape", "isp", "--underlay", "ebgp"}, ExitFailure, `the underlay "ebgp": for the kinds of this network, use one of isis, ospf`},
		{[]string{"--shape", "isp", "--kind", "sonic-vs", "--underlay", "ospf"}, ExitFailure, `the underlay "ospf": c9s has no configuration of these kinds for the shape isp`},
		{[]string{"--name", "Big", "--leaves", "0"}, ExitFailure, "0 leaves: use 1 to 8000"},
		{[]string{"-o", "-"}, ExitUsage, "--file - prints the topology alone"},
		{[]string{"--name", "dc-"}, ExitFailure, "starting and ending with a letter or digit"},
		{[]string{"--shape", "star", "--nodes", "3"}, ExitUsage, `--shape "star": use one of clos, ring, mesh, hub, isp`},
		{[]string{"--shape", "isp", "--leaves", "3"}, ExitUsage, "--leaves is for --shape clos"},
		{[]string{"--customers-per-edge", "3"}, ExitUsage, "--customers-per-edge is for --shape isp"},
		{[]string{"--kind", "k8s-kind"}, ExitUsage, "--kind: nodes of kind k8s-kind cannot run in a Pod"},
		{[]string{"--nodes", "2:host"}, ExitUsage, "--nodes: host stands for the worker"},
		{[]string{"--image", "frr="}, ExitUsage, `--image: "" is not an image`},
		{[]string{"--image", "a b"}, ExitUsage, `--image: "a b" is not an image`},
		{[]string{"more"}, ExitUsage, "unknown command"},
	} {
		if _, errs, code := run(t, append([]string{"generate"}, c.args...)...); code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%q: exit code %d, want %d\n%s", c.args, code, c.code, errs)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("%v are written, %v", entries, err)
	}
}

// TestGenerateStaleFabric: the fabric file of another network would configure the routers.
func TestGenerateStaleFabric(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, errs, code := run(t, "generate", "--name", "dc"); code != ExitOK {
		t.Fatal(errs)
	}
	unsupported := []string{"generate", "--name", "dc", "--kind", "bridge", "--force"}
	if _, errs, code := run(t, unsupported...); code != ExitFailure || !strings.Contains(errs, "dc/fabric.yaml is of another network") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if err := os.Remove(filepath.Join("dc", "fabric.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := run(t, unsupported...); code != ExitOK {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// TestGenerateTiers: containerlab's form is printed and names no other file.
func TestGenerateTiers(t *testing.T) {
	out, errs, code := run(t, "generate", "--name", "3tier", "--nodes", "2:srl:ixrd3,1", "--kind", "ceos", "--image", "ceos=ceos:4.32")
	for _, want := range []string{"name: 3tier\n", `nokia_srlinux: {image: "ghcr.io/nokia/srlinux`, `arista_ceos: {image: "ceos:4.32"}`, "type: ixrd3\n", `["node1-2:e1-1", "node2-1:eth2"]`} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if code != ExitOK || errs != "" || strings.Contains(out, "startup") {
		t.Errorf("exit code %d\n%s\n%s", code, errs, out)
	}
}
