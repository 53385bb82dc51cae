package graph

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/compile"
	"github.com/c9s-lab/c9s/pkg/topology"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the goldens")

func graphOf(t *testing.T, text string) *Graph {
	t.Helper()
	f, diags := topology.Load(t.Context(), &topology.Source{Name: "t", Data: []byte(text)}, topology.Options{})
	if f == nil {
		t.Fatal(diags)
	}
	l, _ := compile.Compile(t.Context(), f, compile.Options{})
	return New(l)
}

const small = `
name: small
topology:
  defaults: {kind: linux, image: a}
  nodes:
    "le\"af1": {labels: {graph-level: 2}}
    spine1: {kind: srl}
    lan: {kind: bridge}
    pc10:
    pc2:
    alone:
  links:
    - endpoints: ["spine1:ethernet-1/1", 'le"af1:eth1']
    - endpoints: ["spine1:e1-2", 'le"af1:eth2']
    - endpoints: ["lan:p1", 'le"af1:eth3']
    - endpoints: ["lan:p2", "pc2:eth1"]
    - endpoints: ["lan:p3", "pc10:eth1"]
    - endpoints: ["pc2:eth2", "pc2:eth3"]
    - endpoints: ["pc10:eth2", "host:tap0"]
    - {type: vxlan, endpoint: {node: pc10, interface: vx0}, remote: 192.0.2.9, vni: 5}
    - {type: dummy, endpoint: {node: pc10, interface: d0}}
`

func TestLayout(t *testing.T) {
	g := graphOf(t, small)
	var rows []string
	for _, row := range g.Levels {
		var names []string
		for _, i := range row {
			names = append(names, g.Nodes[i].Name)
		}
		rows = append(rows, strings.Join(names, " "))
	}
	want := []string{`le"af1 spine1`, "lan", "pc2 pc10", "192.0.2.9 worker", "alone"}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if len(g.Edges) != 8 {
		t.Errorf("%d edges: a dummy leads nowhere, the others somewhere", len(g.Edges))
	}
}

func TestFormats(t *testing.T) {
	g := graphOf(t, small)
	for name, write := range Formats {
		var out bytes.Buffer
		if err := write(&out, g); err != nil {
			t.Fatal(err)
		}
		if name != "html" { // it is the page's script for the most part
			checkGolden(t, "small."+name, out.String())
			continue
		}
		text := strings.ReplaceAll(out.String(), "http://www.w3.org/2000/svg", "")
		for _, external := range []string{"http://", "https://", "src=", "@import", "url("} {
			if strings.Contains(text, external) {
				t.Errorf("the page needs something else: it has %s", external)
			}
		}
		if !strings.Contains(text, `"name":"le\"af1"`) || !strings.Contains(text, `data-events=""`) {
			t.Error("the page lacks its graph")
		}
	}
}

// TestLiveFormats: a running lab has the colours of its states.
func TestLiveFormats(t *testing.T) {
	d := Draft{Name: "lab", State: "degraded"}
	for name, state := range map[string]string{"spine1": "ready", "leaf1": "failed"} {
		d.Node(Node{ID: name, Name: name, Kind: "linux", Live: &NodeState{State: state, Worker: "w1"}}, nil)
	}
	d.Link(End{"spine1", "eth1"}, End{"leaf1", "eth1"}, "veth", &LinkState{State: "down", Carrier: [2]string{"down", "up"}})
	d.Link(End{"spine1", "eth2"}, End{"gone", "eth1"}, "veth", nil)
	d.LinkOutside(End{"leaf1", "eth2"}, "worker", "", "host", &LinkState{State: "up"})
	g := d.Graph()
	slices.SortFunc(g.Nodes[:2], func(a, b Node) int { return strings.Compare(b.Name, a.Name) })
	if len(g.Edges) != 2 {
		t.Fatalf("%d links: one leads to a node that is not there", len(g.Edges))
	}
	for _, format := range []string{"mermaid", "dot"} {
		var out bytes.Buffer
		if err := Formats[format](&out, g); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{tones[toneGood].fill, tones[toneBad].fill, tones[toneBad].stroke, "failed", "ready"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %s:\n%s", format, want, out.String())
			}
		}
	}
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got\n%s", name, diff)
	}
}

// clos is a fabric with full meshes between neighbouring levels.
func clos(names []string, sizes ...int) *Graph {
	d := Draft{Name: "clos"}
	node := func(level, i int) string { return fmt.Sprintf("%s%d", names[level], i+1) }
	for level, n := range sizes {
		for i := range n {
			d.Node(Node{ID: node(level, i), Name: node(level, i), Kind: "linux"}, nil)
		}
	}
	ports := map[string]int{}
	port := func(n string) End {
		ports[n]++
		return End{n, fmt.Sprintf("ethernet-1/%d", ports[n])}
	}
	for level := range len(sizes) - 1 {
		for i := range sizes[level] {
			for j := range sizes[level+1] {
				d.Link(port(node(level, i)), port(node(level+1, j)), "veth", nil)
			}
		}
	}
	return d.Graph()
}

func chain(n int) *Graph {
	d := Draft{Name: "chain"}
	for i := range n {
		name := fmt.Sprintf("r%d", i+1)
		d.Node(Node{ID: name, Name: name}, nil)
		if i > 0 {
			d.Link(End{fmt.Sprintf("r%d", i), "eth2"}, End{name, "eth1"}, "veth", nil)
		}
	}
	return d.Graph()
}

// TestLabelsNeverOverlap: no label covers another one or a box, and small labs have all of them.
func TestLabelsNeverOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		graph *Graph
		least float64 // share of the labels that have a place
	}{
		"small": {graphOf(t, small), .9},
		"clos":  {clos([]string{"spine", "leaf", "host"}, 4, 8, 16), .5},
		"large": {clos([]string{"spine", "leaf"}, 16, 60), .1},
		"chain": {chain(40), 1},
	} {
		p := newPicture(c.graph)
		var all []rectangle
		for _, b := range p.Boxes {
			all = append(all, rectangle{b.X, b.Y, b.X + boxWidth, b.Y + boxHeight})
		}
		wanted, put := 0, 0
		for _, k := range p.Curves {
			for _, end := range []string{k.FromIf, k.ToIf} {
				if end != "" {
					wanted++
				}
			}
			for _, l := range k.Labels {
				half := float64(len(l.Text)) * letterWidth / 2
				r := rectangle{l.X - half, l.Y - labelHeight/2 + .1, l.X + half, l.Y + labelHeight/2 - .1}
				for _, other := range all {
					if r.overlaps(other) {
						t.Fatalf("%s: the label %s of %s overlaps something", name, l.Text, k.Title)
					}
				}
				all = append(all, r)
				put++
			}
		}
		if float64(put) < c.least*float64(wanted) {
			t.Errorf("%s: %d of %d labels have a place", name, put, wanted)
		}
	}
}

// TestGroups: a page folds large labs by these.
func TestGroups(t *testing.T) {
	for name, c := range map[string]struct {
		graph *Graph
		want  string
	}{
		"clos":  {clos([]string{"spine", "leaf", "host"}, 8, 92, 900), "0 spine 8, 1 leaf 92, 2 host 900"},
		"chain": {chain(25), "0 r 3, 1 r8 … r12 2, 2 r6 … r14 4, 3 r5 … r15 2, 4 r4 … r16 2, 5 r3 … r17 2, 6 r1 … r19 4, 7 r20 1, 8 r21 … r23 3, 9 r24 … r25 2"},
		"names": {graphOf(t, "name: n\ntopology:\n  defaults: {kind: linux, image: a}\n  nodes: {a: , b: , c: , d: , e: , f: , g: , h: , i: }\n"), "0 a … i 9"},
		"small": {graphOf(t, small), `0 le"af1 1, 0 spine1 1, 1 lan 1, 2 pc 2, 3 192.0.2.9 1, 3 worker 1, 4 alone 1`},
	} {
		var got []string
		seen := map[int]bool{}
		for _, g := range c.graph.Groups {
			got = append(got, fmt.Sprintf("%d %s %d", g.Band, g.Name, len(g.Nodes)))
			for _, i := range g.Nodes {
				seen[i] = true
			}
		}
		if text := strings.Join(got, ", "); text != c.want || len(seen) != len(c.graph.Nodes) {
			t.Errorf("%s: %s, of %d nodes; want %s", name, text, len(seen), c.want)
		}
	}
}
