package render

import (
	"maps"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// planners names those who made plans, each once: "builtin/0.79.0, hooks/0.79.0".
func planners(plans map[string]*plan.Plan) string {
	names := map[string]bool{}
	for _, p := range plans {
		if p != nil {
			names[p.Planner] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// planner returns who planned a node.
func (x *index) planner(n *lab.Node) string {
	if p := x.plans[n.Name]; p != nil {
		return p.Planner
	}
	return x.planners
}
