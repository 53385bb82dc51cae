package cli

import (
	"slices"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// sound are the nodes that can be looked at further though there are errors, so that
// the user hears of everything at once: those in whose Pod no node has an error. There
// are none where an error may concern any node. links tells that no link has one.
func (c *compiled) sound(diags []diag.Diagnostic) (nodes map[string]bool, links bool) {
	broken := map[string]bool{}
	for _, d := range diags {
		if d.Severity != diag.Error {
			continue
		}
		node, ok := c.file.Block(d.Pos)
		if !ok {
			return nil, false
		}
		broken[node] = true
	}
	nodes = map[string]bool{}
	for _, pod := range c.lab.Pods {
		if slices.ContainsFunc(pod.Nodes, func(n string) bool { return broken[n] }) {
			continue
		}
		for _, n := range pod.Nodes {
			nodes[n] = true
		}
	}
	return nodes, !broken[""]
}
