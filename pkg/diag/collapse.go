package diag

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// shownNodes is how many nodes a folded diagnostic names.
const shownNodes = 4

// fold is a diagnostic and what it stands for besides.
type fold struct {
	first  Diagnostic
	places int
	nodes  []string // of the others
}

// Collapse merges the warnings that differ only in position and node, and the errors
// at one position that differ only in the node, such as those of defaults. It keeps
// the first of each and appends to its message which nodes, or how many places, it also
// stands for.
func Collapse(diags []Diagnostic) []Diagnostic {
	index := map[Diagnostic]int{}
	var folds []fold
	for _, d := range diags {
		key := d
		if d.Severity != Error {
			key.Line, key.Column = 0, 0
		}
		key.Message = withoutNode(d.Message, d.Node)
		key.Hint = withoutNode(d.Hint, d.Node)
		key.Node = ""
		i, seen := index[key]
		if !seen {
			index[key] = len(folds)
			folds = append(folds, fold{first: d})
			continue
		}
		f := &folds[i]
		f.places++
		if d.Node != "" && d.Node != f.first.Node && !slices.Contains(f.nodes, d.Node) {
			f.nodes = append(f.nodes, d.Node)
		}
	}
	out := make([]Diagnostic, 0, len(folds))
	for _, f := range folds {
		out = append(out, f.diagnostic())
	}
	return out
}

// withoutNode is a text less the quoted name of a node.
func withoutNode(text, node string) string {
	if node == "" {
		return text
	}
	return strings.ReplaceAll(text, strconv.Quote(node), "")
}

func (f fold) diagnostic() Diagnostic {
	d := f.first
	switch named := d.Node != "" && strings.Contains(d.Message, strconv.Quote(d.Node)); {
	case f.places == 0:
	case named && len(f.nodes) > 0:
		names := f.nodes
		if len(names) > shownNodes {
			names = append(slices.Clone(names[:shownNodes]), "...")
		}
		d.Message += fmt.Sprintf(" (and for %s: %s)", Count(len(f.nodes), "more node"), strings.Join(names, ", "))
	default:
		d.Message += fmt.Sprintf(" (and at %s)", Count(f.places, "more place"))
	}
	return d
}
