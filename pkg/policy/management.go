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
// connections, and from which it gets none. For each pair, the first rule counts that matches
// it. Nodes that share a Pod have the rules of its primary, which has the address.
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
	type compiled struct {
		from, to []bool // by index in nodes
		allow    bool
	}
	rules := make([]compiled, len(p.management))
	for i := range p.management {
		rule := &p.management[i]
		rules[i] = compiled{rule.side(&rule.From, "from", nodes, diags), rule.side(&rule.To, "to", nodes, diags), rule.Allow.Value}
	}
	denied := func(a, b int) bool {
		for _, r := range rules {
			if r.from[a] && r.to[b] {
				return !r.allow
			}
		}
		return false
	}
	for a, from := range nodes {
		for b, to := range nodes {
			if a != b && denied(a, b) {
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

// side reports which nodes one selector of the rule has. One that matches nothing is a warning.
func (rule *MgmtRule) side(s *Selector, word string, nodes []*lab.Node, diags *diag.List) []bool {
	selected := nodes
	if s.Set() {
		selected = s.Select(nodes, diags)
	}
	if len(selected) == 0 && len(nodes) > 0 {
		diags.Warnf(CodeUnused, s.Pos, "check it, or remove the rule", "%s of a rule of management matches no node with a management address", word)
	}
	in := map[*lab.Node]bool{}
	for _, n := range selected {
		in[n] = true
	}
	out := make([]bool, len(nodes))
	for i, n := range nodes {
		out[i] = in[n]
	}
	return out
}
