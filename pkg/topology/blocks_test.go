package topology

import (
	"testing"

	"github.com/c9s-lab/c9s/pkg/diag"
)

func TestBlock(t *testing.T) {
	const text = `name: x
topology:
  defaults: {kind: linux}
  nodes:
    a: {kind: b, image: c}
    b:
      image: >
        d

    c: {image: e}
  links:
    - endpoints: [a:eth1, b:eth1]
  kinds:
    linux: {}
`
	var diags diag.List
	f := parseFile(&Source{Name: "t.clab.yml"}, text, &diags)
	if f == nil {
		t.Fatal(diags.All())
	}
	for at, want := range map[[2]int]string{
		{3, 13}: "none", {4, 3}: "none", {5, 5}: "a", {5, 30}: "a", {6, 4}: "a", {6, 5}: "b", {8, 9}: "b", {9, 1}: "b", {10, 5}: "c", {10, 40}: "c",
		{11, 3}: "", {12, 7}: "", {13, 3}: "none", {14, 5}: "none", {1, 1}: "none", {0, 0}: "none",
	} {
		got, ok := blockAt(f, diag.Pos{File: "t.clab.yml", Line: at[0], Column: at[1]})
		if !ok {
			got = "none"
		}
		if got != want {
			t.Errorf("line %d, column %d: %q, want %q", at[0], at[1], got, want)
		}
	}
	if _, ok := blockAt(f, diag.Pos{File: "other.yml", Line: 5, Column: 5}); ok {
		t.Error("a place in another file")
	}
	flow := parseFile(&Source{Name: "t"}, "{name: x, topology: {nodes: {a: {}, b: {kind: linux}}, links: []}}", &diags)
	for column, want := range map[int]string{30: "a", 36: "a", 37: "b", 50: "b", 56: ""} {
		if got, ok := blockAt(flow, diag.Pos{File: "t", Line: 1, Column: column}); !ok || got != want {
			t.Errorf("column %d: %q %t, want %q", column, got, ok, want)
		}
	}
	for text, want := range map[string]bool{
		"name: x\ntopology:\n  nodes:\n    a: &x {kind: linux}\n    b: *x\n":                               false,
		"name: x\ntopology:\n  nodes:\n    a: &x {kind: linux}\n    b: {<<: *x, image: y}\n":               false,
		"name: x\ntopology:\n  nodes:\n    a: {env: &x {A: b}, labels: *x}\n    b: {}\n":                   true,
		"name: x\nprefix: &p y\ntopology:\n  defaults: &d {kind: linux}\n  nodes:\n    a: *d\n    b: {}\n": true,
	} {
		f := parseFile(&Source{Name: "t"}, text, &diags)
		if got := len(f.blocks) == 2; got != want {
			t.Errorf("%q: %d blocks", text, len(f.blocks))
		}
	}
	alias := parseFile(&Source{Name: "t"}, "x: &n {a: {}}\nname: x\ntopology:\n  nodes: *n\n", &diags)
	if node, ok := blockAt(alias, diag.Pos{File: "t", Line: 1, Column: 8}); ok {
		t.Errorf("a node behind an alias: %q", node)
	}
}

// blockAt returns the node of a position, "" for the links, and whether it has one.
func blockAt(f *File, pos diag.Pos) (node string, ok bool) {
	diags := []diag.Diagnostic{{Pos: pos}}
	f.Attribute(diags)
	return diags[0].Node, diags[0].Node != "" || diags[0].Link
}
