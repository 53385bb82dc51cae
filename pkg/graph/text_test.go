package graph

import (
	"strings"
	"testing"
)

// TestMermaidText: nothing in a name ends a label or becomes markup.
func TestMermaidText(t *testing.T) {
	g := &Graph{
		Name: "a: b", Levels: [][]int{{0, 1}},
		Nodes: []Node{{Name: "<img src=x>\"]; end", Kind: "linux"}, {Name: "b`#35;", Kind: "linux"}},
		Edges: []Edge{{From: 0, To: 1, FromIf: "\"| n9", ToIf: "eth1"}},
	}
	var b strings.Builder
	if err := Mermaid(&b, g); err != nil {
		t.Fatal(err)
	}
	want := `---
title: "a: b"
---
graph TD
  n0["#lt;img src=x#gt;#quot;]; end<br/>linux"]
  n1["b#96;#35;35;<br/>linux"]
  n0 ---|"#quot;| n9 - eth1"| n1
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	for name, want := range map[string]string{"demo": "demo", "a-1.b_c": "a-1.b_c", "1": `"1"`, "a b": `"a b"`, "": `""`} {
		if got := mermaidTitle(name); got != want {
			t.Errorf("title of %q: %s, want %s", name, got, want)
		}
	}
}
