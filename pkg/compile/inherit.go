package compile

import (
	"strings"

	"github.com/c9s-lab/c9s/pkg/topology"
)

// Inherited says what a node inherits from: its kind as written, its group, and the name
// of the block of topology.kinds that applies, each "" for none.
type Inherited struct {
	Kind, Group, Block string
}

// Inherit returns what each node of a topology inherits from.
func Inherit(t *topology.Topology) map[string]Inherited {
	out := make(map[string]Inherited, len(t.Nodes.Items))
	for _, def := range t.Nodes.Items {
		r := resolveNode(t, def)
		_, block, _ := kindBlock(t, r.kind)
		out[def.Name] = Inherited{Kind: strings.ToLower(r.kind), Group: r.group, Block: block.Name}
	}
	return out
}
