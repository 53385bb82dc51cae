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
			fmt.Fprintf(b, "  n%d%s\"%s\"%s%s\n", i, left, label(n), right, mermaidClass(n))
		}
	}
	for _, e := range g.Edges {
		line := "---"
		if e.Live.tone() == toneBad {
			line = "-.-"
		}
		fmt.Fprintf(b, "  n%d %s|\"%s\"| n%d\n", e.From, line, mermaidText(ends(e)), e.To)
	}
	if g.live() {
		for _, t := range tones {
			fmt.Fprintf(b, "  classDef %s fill:%s,stroke:%s,color:#222222\n", t.name, t.fill, t.stroke)
		}
		for i, e := range g.Edges {
			fmt.Fprintf(b, "  linkStyle %d stroke:%s\n", i, tones[e.Live.tone()].stroke)
		}
	}
	return b.Flush()
}

// mermaidClass gives a node the colours of its state.
func mermaidClass(n Node) string {
	if n.Live == nil {
		return ""
	}
	return ":::" + tones[n.Live.tone()].name
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
	return mermaidText(n.Name) + "<br/>" + mermaidText(n.Kind) + stateText(n, "<br/>")
}

// stateText is the state of a node after a separator, "" where it has none.
func stateText(n Node, separator string) string {
	if n.Live == nil {
		return ""
	}
	return separator + n.Live.State
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
			switch t := tones[n.Live.tone()]; {
			case n.Outside:
				attrs = ", style=dashed"
			case n.Live != nil:
				attrs = fmt.Sprintf(", style=\"rounded,filled\", fillcolor=%q, color=%q", t.fill, t.stroke)
			}
			text := n.Name
			if n.Kind != "" {
				text += "\n" + n.Kind
			}
			text += stateText(n, "\n")
			fmt.Fprintf(b, "    n%d [label=%s%s];\n", i, dotText(text), attrs)
		}
		b.WriteString("  }\n")
	}
	for _, e := range g.Edges {
		attrs := ""
		if e.Live != nil {
			attrs = fmt.Sprintf(", color=%q", tones[e.Live.tone()].stroke)
			if e.Live.tone() == toneBad {
				attrs += ", style=dashed"
			}
		}
		fmt.Fprintf(b, "  n%d -- n%d [taillabel=%s, headlabel=%s%s];\n", e.From, e.To, dotText(e.FromIf), dotText(e.ToIf), attrs)
	}
	b.WriteString("}\n")
	return b.Flush()
}

func dotText(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
	return `"` + s + `"`
}
