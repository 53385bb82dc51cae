//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/status"
)

// nodeRef names nodes of a lab: by arguments, by label, or all.
type nodeRef struct {
	targetFlags
	lab       string
	namespace string
	topo      string
}

// add adds the flags; topo is the letter of --topo, if it is free.
func (f *nodeRef) add(cmd *cobra.Command, world IO, topo string) {
	f.targetFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.lab, "lab", "", "lab of the nodes (default: the topology here, or the only lab)")
	fs.StringVarP(&f.topo, "topo", topo, "", "topology of the lab")
	fs.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the lab (default: find it)")
	cmd.ValidArgsFunction = f.complete(world)
}

// find connects and reads the lab's nodes.
func (f *nodeRef) find(ctx context.Context, world IO) (*cluster.Client, cluster.Found, []cluster.Node, error) {
	ref := labRef{targetFlags: f.targetFlags, namespace: f.namespace, topoFlags: topoFlags{topo: f.topo}}
	var args []string
	if f.lab != "" {
		args = []string{f.lab}
	}
	client, found, err := ref.find(ctx, world, args)
	if err != nil {
		return nil, found, nil, err
	}
	nodes, err := client.Nodes(ctx, found)
	return client, found, nodes, fail(err)
}

// complete completes names of the running lab's nodes.
func (f *nodeRef) complete(world IO) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		quiet := world
		quiet.Err = discard{}
		_, _, nodes, err := f.find(ctx, quiet)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// matchLabel keeps the nodes that carry a label of the topology: KEY or KEY=VALUE.
func matchLabel(nodes []cluster.Node, label string) []cluster.Node {
	key, value, has := strings.Cut(label, "=")
	return slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool {
		got, ok := n.Labels[key]
		return !ok || has && got != value
	})
}

// deployments are those of nodes, each once.
func deployments(nodes []cluster.Node) []string {
	set := map[string]bool{}
	for _, n := range nodes {
		set[n.Deployment] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// lifecycle is restart, stop or start of nodes: they differ in what they do to a
// Deployment, and in what they wait for.
type lifecycle struct {
	nodeRef
	wait    bool
	timeout time.Duration

	world IO
	// verb names the step that changes the Deployments.
	verb string
	act  func(context.Context, *cluster.Client, cluster.Found, string) error
	// stop: the nodes have no Pod afterwards.
	stop bool
	// loses: the nodes lose what is not saved. doing names the step in a question.
	loses bool
	doing string
	save  bool
	yes   bool

	names  []string
	client *cluster.Client
	found  cluster.Found
	pods   []string // names of Deployments
}

func (f *lifecycle) command(use, short, long string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " NODE...", Short: short, Long: long,
		Example: fmt.Sprintf("  c9s %[1]s R1\n  c9s %[1]s R1 R2 --lab mylab", use),
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.names = args
			return cluster.RunSteps(cmd.Context(), announce(f.world), f.steps())
		},
	}
	f.add(cmd, f.world, "t")
	cmd.Flags().BoolVar(&f.wait, "wait", true, "wait until the nodes have restarted, started or stopped")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "time limit")
	if f.loses {
		cmd.Flags().BoolVar(&f.save, "save", false, "save the running configurations first, as 'c9s save' does")
		cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask about configurations that are not saved")
	}
	return cmd
}

// steps returns what the command does, in order.
func (f *lifecycle) steps() []cluster.Step {
	steps := []cluster.Step{
		{Name: "find the nodes", Run: f.choose},
		{Name: f.verb, Run: f.change},
	}
	switch {
	case !f.wait:
	case f.stop:
		steps = append(steps, cluster.Step{Name: "wait until the nodes have stopped", Run: f.awaitStopped})
	default:
		steps = append(steps, cluster.Step{Name: "wait until the nodes are ready", Run: f.awaitReady})
	}
	return steps
}

func (f *lifecycle) choose(ctx context.Context) (err error) {
	var nodes []cluster.Node
	if f.client, f.found, nodes, err = f.find(ctx, f.world); err != nil {
		return err
	}
	chosen, err := cluster.Select(nodes, f.names)
	f.pods = deployments(chosen)
	if err != nil || !f.loses {
		return fail(err)
	}
	// All nodes of a Pod go with it.
	lost := slices.DeleteFunc(nodes, func(n cluster.Node) bool { return n.Stopped || !slices.Contains(f.pods, n.Deployment) })
	keep := keepWork{save: f.save, yes: f.yes, at: localFiles(f.topo, f.lab)}
	return keep.before(ctx, f.world, f.client, f.found, lost, kinds.Builtin(), f.doing)
}

func (f *lifecycle) change(ctx context.Context) error {
	for _, name := range f.pods {
		if err := f.act(ctx, f.client, f.found, name); err != nil {
			return fail(err)
		}
	}
	return nil
}

func (f *lifecycle) awaitStopped(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	for _, name := range f.pods {
		if err := f.client.WaitNoPod(ctx, f.found.Namespace, name); err != nil {
			return fail(err)
		}
		fmt.Fprintf(f.world.Err, "%s: %s\n", name, status.StateStopped)
	}
	return nil
}

func (f *lifecycle) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	began := time.Now()
	if err := f.client.WaitPods(ctx, f.found.Namespace, f.found.Name, f.pods); err != nil {
		return fail(err)
	}
	fmt.Fprintf(f.world.Err, "%s: %s (%.1f s)\n", strings.Join(f.pods, ", "), status.StateReady, time.Since(began).Seconds())
	return nil
}

func newRestart(world IO) *cobra.Command {
	f := &lifecycle{world: world, verb: "replace the Pods", loses: true, doing: "Restart", act: func(ctx context.Context, c *cluster.Client, l cluster.Found, name string) error {
		return c.RestartRunning(ctx, l.Namespace, name)
	}}
	return f.command("restart", "Restart nodes", `Restart replaces the Pods of nodes. Addresses and data on claims stay the same. If a
running configuration differs from the saved one, restart asks; --save saves it first.`)
}

func newStop(world IO) *cobra.Command {
	f := &lifecycle{world: world, verb: "delete the Pods", act: scale(0), stop: true, loses: true, doing: "Stop"}
	return f.command("stop", "Stop nodes until they are started again",
		"Stop deletes the Pods of nodes and leaves everything else. Their neighbours see the\nlinks go down. To bring the nodes back, use start or deploy.")
}

func newStart(world IO) *cobra.Command {
	f := &lifecycle{world: world, verb: "create the Pods", act: scale(1)}
	return f.command("start", "Start nodes that were stopped", "Start starts nodes that were stopped.")
}

func scale(replicas int) func(context.Context, *cluster.Client, cluster.Found, string) error {
	return func(ctx context.Context, c *cluster.Client, l cluster.Found, name string) error {
		return c.Scale(ctx, l.Namespace, name, replicas)
	}
}
