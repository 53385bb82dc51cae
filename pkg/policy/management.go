package policy

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// MgmtRule says whether nodes may open connections to others on the management network.
type MgmtRule struct {
	// From and To select the nodes of both ends. Without one, all nodes match.
	From Selector `json:"from,omitzero"`
	To   Selector `json:"to,omitzero"`
	// Allow is the answer for the pairs of nodes that no earlier rule matches.
	Allow topology.Bool `json:"allow"`
	Pos   diag.Pos      `json:"-"`
}

// management checks the rules of the management network.
func (r *reader) management(n *yaml.Node) []MgmtRule {
	var rules []MgmtRule
	if !r.decode(n, "management", &rules) {
		return nil
	}
	for _, rule := range rules {
		if !rule.Allow.Set {
			r.wrong(rule.Pos, "add allow: false", "a rule of management does not say whether it allows")
		}
	}
	return rules
}

// limitReach sets for each Pod with a management address to which others it may not open
// connections, and from which it gets none. For each pair, the first rule that matches it
// counts. Nodes that share a Pod have the rules of its primary, which has the address.
func (p *Policy) limitReach(l *lab.Lab, diags *diag.List) {
	if len(p.management) == 0 {
		return
	}
	var nodes []*lab.Node
	for _, n := range l.Nodes {
		if n.OnMgmtNetwork() {
			nodes = append(nodes, n)
		}
	}
	// By the nodes of from: those of to that a rule decides about, and those that it denies.
	decided, denied := make([]nodeSet, len(nodes)), make([]nodeSet, len(nodes))
	for a := range nodes {
		decided[a], denied[a] = newNodeSet(len(nodes)), newNodeSet(len(nodes))
	}
	for i := range p.management {
		rule := &p.management[i]
		from, to := rule.side(&rule.From, "from", nodes, diags), rule.side(&rule.To, "to", nodes, diags)
		for a := range nodes {
			if !from.has(a) {
				continue
			}
			for w := range to {
				first := to[w] &^ decided[a][w]
				decided[a][w] |= first
				if !rule.Allow.Value {
					denied[a][w] |= first
				}
			}
		}
	}
	for a, from := range nodes {
		for b, to := range nodes {
			if a != b && denied[a].has(b) {
				from.Policy.DenyTo = append(from.Policy.DenyTo, to.ID)
				to.Policy.DenyFrom = append(to.Policy.DenyFrom, from.ID)
			}
		}
	}
	for _, n := range nodes {
		slices.Sort(n.Policy.DenyTo)
		slices.Sort(n.Policy.DenyFrom)
	}
}

// side returns the nodes of one selector of the rule. One that matches nothing is a warning.
func (rule *MgmtRule) side(s *Selector, word string, nodes []*lab.Node, diags *diag.List) nodeSet {
	selected := nodes
	if s.Set() {
		selected = s.Select(nodes, diags)
	}
	if len(selected) == 0 && len(nodes) > 0 {
		diags.Warnf(CodeUnused, s.Pos, "check it, or remove the rule", "%s of a rule of management matches no node with a management address", word)
	}
	out, i := newNodeSet(len(nodes)), 0
	for _, n := range selected { // in the order of nodes
		for nodes[i] != n {
			i++
		}
		out.add(i)
	}
	return out
}

// nodeSet is a set of nodes by their indexes, one bit each. A lab may have thousands of rules,
// and millions of pairs of nodes.
type nodeSet []uint64

func newNodeSet(nodes int) nodeSet { return make(nodeSet, (nodes+63)/64) }
func (s nodeSet) add(i int)        { s[i/64] |= 1 << (i % 64) }
func (s nodeSet) has(i int) bool   { return s[i/64]>>(i%64)&1 == 1 }
