package pipeline

import (
	"slices"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// sound returns the nodes that can be planned and rendered in spite of errors, so that
// the user sees all problems at once: those that share no Pod with a node that has an
// error. There are none if an error concerns the whole lab. links reports whether no
// link has an error.
func (c *Compiled) sound(diags []diag.Diagnostic) (nodes map[string]bool, links bool) {
	broken := map[string]bool{}
	for _, d := range diags {
		if d.Severity != diag.Error {
			continue
		}
		if d.Node == "" && !d.Link {
			return nil, false
		}
		broken[d.Node] = true
	}
	nodes = map[string]bool{}
	for _, pod := range c.Lab.Pods {
		if slices.ContainsFunc(pod.Nodes, func(n string) bool { return broken[n] }) {
			continue
		}
		for _, n := range pod.Nodes {
			nodes[n] = true
		}
	}
	return nodes, !broken[""]
}
