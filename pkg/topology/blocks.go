package topology

import (
	"math"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// block is a part of the file: one node, or the links.
type block struct {
	node     string // "" for the links
	from, to place  // to is the first place after it
	value    *yaml.Node
}

func (b block) has(p place) bool { return !p.before(b.from) && p.before(b.to) }

// place is a line and a column, 1-based.
type place struct{ line, column int }

func (p place) before(q place) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// Attribute sets Node or Link of the diagnostics whose position is in one node or in
// the links, if they have none. Positions that several nodes share stay without.
func (f *File) Attribute(diags []diag.Diagnostic) {
	for i := range diags {
		d := &diags[i]
		if d.Node != "" || d.Link || d.File != f.Path {
			continue
		}
		for _, b := range f.blocks {
			if b.has(place{d.Line, d.Column}) {
				d.Node, d.Link = b.node, b.node == ""
				break
			}
		}
	}
}

// blocksOf returns the blocks of a topology. A block behind an alias has none, and neither
// have nodes that share parts.
func blocksOf(root *yaml.Node) []block {
	out := written(root)
	for _, b := range out {
		if b.value != nil && shares(b.value, func(n *yaml.Node) bool {
			return !b.has(placeOf(n)) && slices.ContainsFunc(out, func(o block) bool { return o.has(placeOf(n)) })
		}) {
			return nil
		}
	}
	return out
}

// shares reports whether an alias in n refers to a value for which other is true.
func shares(n *yaml.Node, other func(*yaml.Node) bool) bool {
	return n.Kind == yaml.AliasNode && other(n.Alias) || slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return shares(c, other) })
}

func written(root *yaml.Node) []block {
	var out []block
	for _, section := range spans(root, place{math.MaxInt, 0}) {
		if section.key.Value != "topology" {
			continue
		}
		for _, part := range spans(section.value, section.end) {
			switch part.key.Value {
			case "links":
				out = append(out, block{"", placeOf(part.key), part.end, nil})
			case "nodes":
				for _, n := range spans(part.value, part.end) {
					out = append(out, block{n.key.Value, placeOf(n.key), n.end, n.value})
				}
			}
		}
	}
	return out
}

// spanned is one entry of a mapping; end is where the next one starts.
type spanned struct {
	key, value *yaml.Node
	end        place
}

func spans(m *yaml.Node, end place) []spanned {
	if m.Kind != yaml.MappingNode {
		return nil
	}
	var out []spanned
	for i := 0; i+1 < len(m.Content); i += 2 {
		e := spanned{m.Content[i], m.Content[i+1], end}
		if i+2 < len(m.Content) {
			e.end = placeOf(m.Content[i+2])
		}
		out = append(out, e)
	}
	return out
}

func placeOf(n *yaml.Node) place { return place{n.Line, n.Column} }
