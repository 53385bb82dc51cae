package graph

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
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

func TestNaturalOrder(t *testing.T) {
	for _, pair := range [][2]string{{"leaf2", "leaf10"}, {"a", "b"}, {"a1b2", "a1b10"}, {"r", "r1"}, {"r01", "r2"}} {
		if natural(pair[0], pair[1]) >= 0 || natural(pair[1], pair[0]) <= 0 {
			t.Errorf("%q must come before %q", pair[0], pair[1])
		}
	}
}

func TestFormats(t *testing.T) {
	g := graphOf(t, small)
	for name, write := range Formats {
		var out bytes.Buffer
		if err := write(&out, g); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", "small."+name)
		if *update {
			if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		for _, external := range []string{"http://", "https://", "src=", "@import"} {
			text := strings.ReplaceAll(out.String(), "http://www.w3.org/2000/svg", "")
			if name == "html" && strings.Contains(text, external) {
				t.Errorf("the page needs something else: it has %s", external)
			}
		}
	}
}
