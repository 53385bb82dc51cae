package graph

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Mermaid writes a flowchart (https://mermaid.js.org).
func Mermaid(w io.Writer, g *Graph) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "---\ntitle: %s\n---\ngraph TD\n", mermaidTitle(g.Name))
	for _, row := range g.Levels {
		for _, i := range row {
			n := g.Nodes[i]
			left, right := "[", "]"
			switch {
			case n.Outside:
				left, right = "([", "])"
			case n.Kind == "bridge" || n.Kind == "ovs-bridge":
				left, right = "{{", "}}"
			}
			fmt.Fprintf(b, "  n%d%s\"%s\"%s\n", i, left, label(n), right)
		}
	}
	for _, e := range g.Edges {
		fmt.Fprintf(b, "  n%d ---|\"%s\"| n%d\n", e.From, mermaidText(ends(e)), e.To)
	}
	return b.Flush()
}

// mermaidTitle is a YAML text, in quotes where it might be something else.
func mermaidTitle(name string) string {
	plain := strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.0123456789") == ""
	if plain && strings.ContainsAny(name[:min(1, len(name))], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return name
	}
	return strconv.Quote(name)
}

func label(n Node) string {
	if n.Kind == "" {
		return mermaidText(n.Name)
	}
	return mermaidText(n.Name) + "<br/>" + mermaidText(n.Kind)
}

func ends(e Edge) string {
	if e.ToIf == "" {
		return e.FromIf
	}
	return e.FromIf + " - " + e.ToIf
}

// mermaidEscapes are what a quoted label would take for its end, an entity, markup
// or a Markdown text.
var mermaidEscapes = strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "`", "#96;", "\n", " ")

func mermaidText(s string) string { return mermaidEscapes.Replace(s) }

// Dot writes a Graphviz graph, a rank for each row.
func Dot(w io.Writer, g *Graph) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "graph %s {\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=9];\n", dotText(g.Name))
	for _, row := range g.Levels {
		b.WriteString("  { rank=same;\n")
		for _, i := range row {
			n := g.Nodes[i]
			attrs := ""
			if n.Outside {
				attrs = ", style=dashed"
			}
			text := n.Name
			if n.Kind != "" {
				text += "\n" + n.Kind
			}
			fmt.Fprintf(b, "    n%d [label=%s%s];\n", i, dotText(text), attrs)
		}
		b.WriteString("  }\n")
	}
	for _, e := range g.Edges {
		fmt.Fprintf(b, "  n%d -- n%d [taillabel=%s, headlabel=%s];\n", e.From, e.To, dotText(e.FromIf), dotText(e.ToIf))
	}
	b.WriteString("}\n")
	return b.Flush()
}

func dotText(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
	return `"` + s + `"`
}
