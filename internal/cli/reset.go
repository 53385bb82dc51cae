//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/save"
)

// What reset does with a node.
const (
	rolledBack     = "rolled back"
	resetByRestart = "restarted"
)

// resetNode is one row of the table of reset.
type resetNode struct {
	Node string `json:"node"`
	Kind string `json:"kind,omitempty"`
	// State is rolled back, restarted or failed.
	State string `json:"state"`
	// Reason says why the node restarted, or why it failed.
	Reason string `json:"reason,omitempty"`
}

type resetFlags struct {
	nodeRef
	topology topoFlags
	restart  bool
	save     bool
	yes      bool
	timeout  time.Duration
	output   string
}

func newReset(world IO) *cobra.Command {
	f := &resetFlags{}
	cmd := &cobra.Command{
		Use:   "reset NODE...",
		Short: "Bring back the declared configuration of nodes",
		Long: `Reset brings nodes back to the configuration of the topology. If a node's kind can load a
configuration without a restart, reset does that; other nodes restart without the data that they
have saved. Reset prints what it did with each node. It needs the topology for kinds that get
their configuration from it.

If a running configuration differs from the saved one, reset asks; --save saves it first. It also
asks before it deletes data on a claim. The exit code is 1 if any node failed.`,
		Example: `  c9s reset R1
  c9s reset R1 R2 --save
  c9s reset R1 --restart --yes`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.output != "" && f.output != "json" {
				return fmt.Errorf("--output %q: use json", f.output)
			}
			return f.run(cmd.Context(), world, args)
		},
	}
	f.add(cmd, world, "t")
	f.topology.addTrust(cmd)
	f.topology.addPlanner(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.topology.kindsDir, "kinds", "", "folder with your own kinds")
	fs.StringVar(&f.topology.policy, "policy", "", "policy file (default: c9s.yaml next to the topology, if it exists)")
	fs.StringSliceVar(&f.topology.vars, "vars", nil, "variables files of the topology's template")
	fs.BoolVar(&f.topology.saved, "saved", false, "bring back the saved configurations instead of the topology's")
	fs.BoolVar(&f.restart, "restart", false, "restart all nodes without their data, even if their kind can do without a restart")
	fs.BoolVar(&f.save, "save", false, "save the running configurations first, as 'c9s save' does")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask about configurations that are not saved, or about data on claims")
	fs.DurationVar(&f.timeout, "timeout", 10*time.Minute, "time limit")
	fs.StringVarP(&f.output, "output", "o", "", "json prints the table as JSON")
	_ = cmd.MarkFlagDirname("kinds")
	_ = cmd.MarkFlagFilename("policy", "yml", "yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// resetting is one run of reset.
type resetting struct {
	*resetFlags
	configs *configs
	// all are the nodes of the lab, nodes those that are reset.
	all, nodes []cluster.Node
	// lab and plans are those of the topology, nil without one.
	lab   *lab.Lab
	plans map[string]*plan.Plan
}

func (f *resetFlags) run(ctx context.Context, world IO, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	catalogue, err := ownKinds(world, f.topology.kindsDir)
	if err != nil {
		return err
	}
	client, found, all, err := f.find(ctx, world)
	if err != nil {
		return err
	}
	nodes, err := cluster.Select(all, names)
	if err == nil {
		nodes, err = eachOnce(nodes)
	}
	if err != nil {
		return fail(err)
	}
	r := &resetting{resetFlags: f, all: all, nodes: nodes}
	at := localFiles(f.nodeRef.topo, f.lab)
	if err := r.declare(ctx, world, at.topo, found.Name); err != nil {
		return err
	}
	if err := r.ask(ctx, world, client, found, catalogue, at); err != nil {
		return err
	}
	if r.configs, err = openConfigs(ctx, world, client, found, r.nodes, catalogue, at); err != nil {
		return fail(err)
	}
	defer r.configs.Close()
	rows := r.reset(ctx)
	err = f.print(world, rows) // also of a run that is interrupted: some nodes are reset
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return exitCode(exitInterrupted)
	}
	return err
}

// declare plans the nodes of the topology, if it is that of the lab.
func (r *resetting) declare(ctx context.Context, world IO, topo, name string) error {
	if topo == "" {
		return nil
	}
	c, err := r.topology.compile(ctx, world, topo, pipeline.Input{Namespace: r.namespace})
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Lab == nil || hasErrors(c.Diags) {
		report(world, c.Diags)
		return errFailed
	}
	if c.Lab.Name != name {
		return nil
	}
	only := map[string]bool{}
	for _, n := range r.nodes {
		only[n.Name] = true
	}
	r.lab = c.Lab
	r.plans, _, err = r.topology.plan(ctx, world, c, only)
	return err
}

// ask saves or asks before work is lost.
func (r *resetting) ask(ctx context.Context, world IO, client *cluster.Client, found cluster.Found, catalogue *kinds.Catalogue, at localLab) error {
	lost := slices.DeleteFunc(slices.Clone(r.all), func(n cluster.Node) bool { return n.Stopped || !r.loses(n, catalogue) })
	k := keepWork{save: r.save, yes: r.yes, at: at}
	if r.output == "json" {
		k.table = world.Err
	}
	if err := k.before(ctx, world, client, found, lost, catalogue, "Reset"); err != nil || r.yes {
		return err
	}
	var claims []string
	for _, n := range r.nodes {
		if n.Claim != "" && !n.Stopped {
			claims = append(claims, n.Name)
		}
	}
	if len(claims) == 0 {
		return nil
	}
	return confirm(ctx, world, fmt.Sprintf("Reset %s? A node that has to restart loses the data on its claim.", strings.Join(claims, ", ")), "--yes")
}

// loses reports whether a node loses its configuration: it is reset, or restarts with one that
// is.
func (r *resetting) loses(n cluster.Node, catalogue *kinds.Catalogue) bool {
	return slices.ContainsFunc(r.nodes, func(m cluster.Node) bool {
		if m.Name == n.Name {
			return true
		}
		kind, ok := catalogue.Lookup(m.Kind)
		return m.Deployment == n.Deployment && (r.restart || !ok || kind.Reset == nil)
	})
}

// reset resets the nodes, each by its kind or else with a restart of its Pod.
func (r *resetting) reset(ctx context.Context) []resetNode {
	rows := make([]resetNode, len(r.nodes))
	bounded.Each(len(rows), nodesAtOnce, func(i int) { rows[i] = r.rollBack(ctx, r.nodes[i]) })
	var pods []string
	for _, n := range r.nodes {
		if !slices.Contains(pods, n.Deployment) {
			pods = append(pods, n.Deployment)
		}
	}
	bounded.Each(len(pods), nodesAtOnce, func(i int) {
		members := map[string]bool{}
		for j, n := range r.nodes {
			if n.Deployment == pods[i] && rows[j].State == resetByRestart {
				members[n.Name] = true
			}
		}
		if len(members) == 0 {
			return
		}
		if err := r.restartWithoutData(ctx, pods[i], members); err != nil {
			for j := range rows {
				if members[rows[j].Node] {
					rows[j].State, rows[j].Reason = failedState, err.Error()
				}
			}
		}
	})
	return rows
}

// rollBack resets a node without a restart if that is possible. A node that is restarted in the
// result still has to be.
func (r *resetting) rollBack(ctx context.Context, n cluster.Node) resetNode {
	row := resetNode{Node: n.Name, Kind: n.Kind, State: rolledBack}
	if err := notStopped(n); err != nil {
		row.State, row.Reason = failedState, err.Error()
		return row
	}
	kind, ok := r.configs.catalogue.Lookup(n.Kind)
	err := fmt.Errorf("%w: kind %q is not in the catalogue", save.ErrNoRollback, n.Kind)
	switch {
	case len(n.Containers) == 0:
		row.State, row.Reason = failedState, "it has no container"
		return row
	case r.restart:
		err = fmt.Errorf("%w: --restart", save.ErrNoRollback)
	case ok && r.topology.saved && (kind.Reset == nil || kind.Reset.Put == ""):
		err = fmt.Errorf("%w: kind %s has none to a saved configuration", save.ErrNoRollback, kind.Name)
	case ok:
		declared, _ := declaredConfig(r.lab, r.plans[n.Name], kind)
		err = save.Reset(ctx, kind, r.configs.device(n, kind), declared)
	}
	switch {
	case errors.Is(err, save.ErrNoRollback) && r.topology.saved:
		// A restart brings back what the last deploy staged.
		row.State, row.Reason = failedState, "it has to restart for its saved configuration: use 'c9s deploy --saved'"
	case errors.Is(err, save.ErrNoRollback):
		row.State, row.Reason = resetByRestart, strings.TrimPrefix(err.Error(), save.ErrNoRollback.Error()+": ")
	case err != nil:
		row.State, row.Reason = failedState, strings.TrimPrefix(err.Error(), "node "+n.Name+": ")
	}
	return row
}

// settleTime is how long the old Pod of a node that restarts without its data may take to end.
const settleTime = 2 * time.Minute

// restartWithoutData replaces a Pod. Its members start without what is on its claim.
func (r *resetting) restartWithoutData(ctx context.Context, pod string, members map[string]bool) error {
	client, found := r.configs.client, r.configs.found
	var claim string
	whole := true
	for _, n := range r.all {
		if n.Deployment != pod {
			continue
		}
		claim = n.Claim
		if !members[n.Name] && len(n.Containers) > 0 {
			whole = false
			if asked := r.loses(n, r.configs.catalogue); !asked {
				return fmt.Errorf("it has to restart together with %s, which is in the same Pod; name both, or use --restart", n.Name)
			}
		}
	}
	if claim == "" {
		if err := client.RestartRunning(ctx, found.Namespace, pod); err != nil {
			return err
		}
		return client.WaitPods(ctx, found.Namespace, found.Name, []string{pod})
	}
	if err := r.forget(ctx, pod, members, whole, false); err != nil {
		err = fmt.Errorf("deleting its data: %w", err)
		// It may have been marked nevertheless, and a later Pod would delete the data.
		if undone := r.forget(context.WithoutCancel(ctx), pod, members, whole, true); undone != nil {
			err = fmt.Errorf("%w; its next Pod may start without its data, since that cannot be taken back: %w", err, undone)
		}
		return err
	}
	// Nothing may write to the claim while the next Pod deletes what is on it.
	if err := client.Scale(ctx, found.Namespace, pod, 0); err != nil {
		return errors.Join(err, r.forget(context.WithoutCancel(ctx), pod, members, whole, true))
	}
	// An interrupt does not leave the node stopped.
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := client.WaitNoPod(settle, found.Namespace, pod); err != nil {
		return fmt.Errorf("%w; 'c9s start' starts it, without its data", err)
	}
	if err := client.Scale(settle, found.Namespace, pod, 1); err != nil {
		return fmt.Errorf("%w; 'c9s start' starts it, without its data", err)
	}
	return client.WaitPods(ctx, found.Namespace, found.Name, []string{pod})
}

// forget has the next Pod delete what nodes have saved, or, with undo, keep it.
func (r *resetting) forget(ctx context.Context, deployment string, members map[string]bool, volumes, undo bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, found := r.configs.client, r.configs.found
	pod, err := client.Pod(ctx, found.Namespace, deployment)
	if err != nil {
		return err
	}
	argv := []string{contract.SidecarProgram, "forget"}
	if volumes {
		argv = append(argv, "--volumes")
	}
	if undo {
		argv = append(argv, "--undo")
	}
	argv = append(argv, "--")
	for _, n := range r.nodes {
		if members[n.Name] {
			argv = append(argv, n.Name)
		}
	}
	var said cluster.Buffer
	code, err := client.Exec(ctx, found.Namespace, pod.Name, contract.WireContainer, argv, cluster.Streams{Out: io.Discard, Err: &said})
	if err == nil && code != 0 {
		err = errors.New(strings.TrimPrefix(strings.TrimSpace(said.String()), "c9s-sidecar: "))
	}
	return err
}

func (f *resetFlags) print(world IO, rows []resetNode) error {
	if f.output == "json" {
		if err := printJSON(world.Out, rows); err != nil {
			return fail(err)
		}
	} else {
		t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
		t.Row("NODE", "KIND", "STATE", "REASON")
		for _, r := range rows {
			t.Row(r.Node, r.Kind, r.State, r.Reason)
		}
		if err := t.Flush(); err != nil {
			return fail(err)
		}
	}
	if slices.ContainsFunc(rows, func(r resetNode) bool { return r.State == failedState }) {
		return errFailed
	}
	return nil
}
