package pipeline

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// Plan plans the nodes of the lab in parallel and returns the plans by node. A nil only
// means all nodes.
func (c *Compiled) Plan(ctx context.Context, p plan.Planner, only map[string]bool) (map[string]*plan.Plan, []diag.Diagnostic, error) {
	var nodes []*lab.Node
	for _, n := range c.Lab.Nodes {
		if only == nil || only[n.Name] {
			nodes = append(nodes, n)
		}
	}
	planned := make([]*plan.Plan, len(nodes))
	errs := make([]error, len(nodes))
	bounded.Each(len(nodes), runtime.GOMAXPROCS(0), func(i int) {
		planned[i], errs[i] = p.Plan(ctx, c.Lab, nodes[i])
	})
	plans := make(map[string]*plan.Plan, len(nodes))
	var diags diag.List
	for i, n := range nodes {
		if errs[i] != nil {
			return nil, nil, fmt.Errorf("planning node %q: %w", n.Name, errs[i])
		}
		plans[n.Name] = planned[i]
		if planned[i] == nil {
			continue
		}
		found := slices.Concat(planned[i].Diagnostics, plan.CheckLicense(planned[i], n))
		c.File.Attribute(found)
		end := diags.ForNode(n.Name)
		diags.Append(found)
		end()
	}
	return plans, diags.All(), nil
}
