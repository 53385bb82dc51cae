package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
)

func newPlan(world IO) *cobra.Command {
	f := &topoFlags{}
	var output string
	var nodes []string
	cmd := &cobra.Command{
		Use:   "plan [TOPO]",
		Short: "Show the plan of each node",
		Long: `Plan prints what each node needs before it becomes Kubernetes objects: containers, files,
mounts, steps and requirements.`,
		Example:           "  c9s plan topo.clab.yml --node r1\n  c9s plan topo.clab.yml -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "yaml" && output != "json" {
				return fmt.Errorf("--output %q: use yaml or json", output)
			}
			ref, err := f.ref(args)
			if err != nil {
				return err
			}
			return f.showPlans(cmd.Context(), world, ref, nodes, output)
		},
	}
	f.add(cmd)
	f.addPlanner(cmd)
	cmd.Flags().StringSliceVar(&nodes, "node", nil, "print only these nodes")
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "yaml or json")
	_ = cmd.RegisterFlagCompletionFunc("node", f.completeNodes(world))
	return cmd
}

func (f *topoFlags) showPlans(ctx context.Context, world IO, ref string, nodes []string, output string) error {
	c, err := f.compile(ctx, world, ref, pipeline.Input{})
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Lab == nil || hasErrors(c.Diags) {
		report(world, c.Diags)
		fmt.Fprintln(world.Err, summary(c.Diags))
		return errFailed
	}
	only, err := selectNodes(c.Lab, nodes)
	if err != nil {
		return fail(err)
	}
	plans, planDiags, err := f.plan(ctx, world, c, only)
	if err != nil {
		return err
	}
	diags := slices.Concat(c.Diags, planDiags)
	report(world, diags)
	list := make([]*plan.Plan, 0, len(plans))
	for _, n := range c.Lab.Nodes {
		if p := plans[n.Name]; p != nil {
			list = append(list, p)
		}
	}
	if output == "json" {
		err = printJSON(world.Out, list)
	} else {
		err = printYAML(world.Out, list)
	}
	if err == nil && hasErrors(diags) {
		return errFailed
	}
	return fail(err)
}

// selectNodes turns node names, in either spelling, into a set; nil means all.
func selectNodes(l *lab.Lab, names []string) (map[string]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out := map[string]bool{}
	for _, name := range names {
		found := false
		for _, n := range l.Nodes {
			if n.Name == name || n.ID == name {
				out[n.Name], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("the topology has no node %q", name)
		}
	}
	return out, nil
}
