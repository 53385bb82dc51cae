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

// side is what a rule selects at one end: every node, or those with these names.
type side struct {
	all   bool
	names map[string]bool
}

func (s side) has(name string) bool { return s.all || s.names[name] }

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
		from, to side
		allow    bool
	}
	rules := make([]compiled, len(p.management))
	for i := range p.management {
		rule := &p.management[i]
		rules[i] = compiled{rule.side(&rule.From, "from", nodes, diags), rule.side(&rule.To, "to", nodes, diags), rule.Allow.Value}
	}
	denied := func(a, b *lab.Node) bool {
		for _, r := range rules {
			if r.from.has(a.Name) && r.to.has(b.Name) {
				return !r.allow
			}
		}
		return false
	}
	for _, a := range nodes {
		for _, b := range nodes {
			if a != b && denied(a, b) {
				a.Policy.DenyTo = append(a.Policy.DenyTo, b.ID)
				b.Policy.DenyFrom = append(b.Policy.DenyFrom, a.ID)
			}
		}
	}
	for _, n := range nodes {
		slices.Sort(n.Policy.DenyTo)
		slices.Sort(n.Policy.DenyFrom)
	}
}

// side evaluates one selector of the rule. One that matches nothing is a warning.
func (rule *MgmtRule) side(s *Selector, word string, nodes []*lab.Node, diags *diag.List) side {
	if !s.Set() {
		return side{all: true}
	}
	names := map[string]bool{}
	for _, n := range s.Select(nodes, diags) {
		names[n.Name] = true
	}
	if len(names) == 0 {
		diags.Warnf(CodeUnused, s.Pos, "check it, or remove the rule", "%s of a rule of management matches no node with a management address", word)
	}
	return side{names: names}
}
