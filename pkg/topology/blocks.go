package topology

import (
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// block is a part of the file: one node, or the links.
type block struct {
	node     string // "" for the links
	from, to place  // to is the first place after it
}

// place is a line and a column, 1-based.
type place struct{ line, column int }

func (p place) before(q place) bool {
	return p.line < q.line || p.line == q.line && p.column < q.column
}

// Block tells what a position in the file belongs to: a node (its name), the links (""),
// or neither (false), as what many nodes share.
func (f *File) Block(pos diag.Pos) (node string, ok bool) {
	at := place{pos.Line, pos.Column}
	for _, b := range f.blocks {
		if pos.File == f.Path && !at.before(b.from) && at.before(b.to) {
			return b.node, true
		}
	}
	return "", false
}

// blocksOf finds the blocks of a topology that is written out: one behind an alias has
// none.
func blocksOf(root *yaml.Node) []block {
	var out []block
	for _, section := range spans(root, place{math.MaxInt, 0}) {
		if section.key.Value != "topology" {
			continue
		}
		for _, part := range spans(section.value, section.end) {
			switch part.key.Value {
			case "links":
				out = append(out, block{"", placeOf(part.key), part.end})
			case "nodes":
				for _, n := range spans(part.value, part.end) {
					out = append(out, block{n.key.Value, placeOf(n.key), n.end})
				}
			}
		}
	}
	return out
}

// spanned is one entry of a mapping; end is where the next one begins.
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
