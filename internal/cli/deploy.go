//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/render"
)

type deployFlags struct {
	labFlags
	targetFlags
	wait    bool
	timeout time.Duration
	dryRun  string
	yes     bool
	output  string
}

func newDeploy(world IO) *cobra.Command {
	f := &deployFlags{}
	cmd := &cobra.Command{
		Use:   "deploy [TOPO]",
		Short: "Run a topology in the cluster of the current context",
		Long: `Deploy renders the topology, applies it to the cluster of the current context,
removes what an earlier deploy of the lab made and this one lacks, and waits until
every node is ready. What has not changed is not touched. Interrupting it and
running it again is always safe.`,
		Example: `  c9s deploy topo.clab.yml
  c9s deploy topo.clab.yml -n team-a --map-image 'ceos*=registry.example/arista/ceos*'
  c9s deploy topo.clab.yml --dry-run=server`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labFlags.add(cmd)
	f.targetFlags.add(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.wait, "wait", true, "wait until every node is ready")
	fs.DurationVar(&f.timeout, "timeout", 0, "how long to wait (default: until it is ready or has certainly failed)")
	fs.StringVar(&f.dryRun, "dry-run", "none", "none, client (say what would be applied) or server (let the API server check it)")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask before nodes of a running lab are restarted or removed")
	fs.StringVarP(&f.output, "output", "o", "", "json for events, one a line")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *deployFlags) check() error {
	if !slices.Contains([]string{"none", "client", "server"}, f.dryRun) {
		return fmt.Errorf("--dry-run %q: use none, client or server", f.dryRun)
	}
	if f.output != "" && f.output != "json" {
		return fmt.Errorf("--output %q: use json", f.output)
	}
	if f.timeout < 0 {
		return fmt.Errorf("--timeout %s: give a time, or 0 for none", f.timeout)
	}
	return nil
}

// inCluster is a topology rendered for a cluster, with what is there of it.
type inCluster struct {
	client   *cluster.Client
	lab      *cluster.Lab
	existing cluster.Existing
	out      *render.Output
	links    int
}

// prepareLab compiles and renders a topology with what the cluster already has of
// it: its allocations, wire key and certificates. A nil result with errFailed
// means that the diagnostics have been told.
func (f *labFlags) prepareLab(ctx context.Context, world IO, target *targetFlags, args []string) (*inCluster, error) {
	ref, err := f.ref(args)
	if err != nil {
		return nil, err
	}
	rules, err := f.imageRules()
	if err != nil {
		return nil, err
	}
	c, err := f.compileTopology(ctx, world, ref, compileOptions{namespace: f.namespace, recycle: f.recycle})
	if err != nil {
		return nil, err
	}
	defer func() { c.source.Close() }()
	if c.lab == nil || hasErrors(c.diags) {
		_, diags, err := f.renderLab(ctx, world, c, rules, render.Options{}, nil)
		if err != nil {
			return nil, err
		}
		return nil, notApplied(world, diags)
	}
	client, err := target.connect(ctx)
	if err != nil {
		return nil, err
	}
	existing, err := client.Existing(ctx, c.lab.Namespace)
	if err != nil {
		return nil, fail(err)
	}
	if existing.Allocations != nil && existing.Lab == c.lab.Name {
		again, err := f.compileTopology(ctx, world, ref, compileOptions{namespace: f.namespace, recycle: f.recycle, previous: existing.Allocations})
		if err != nil {
			return nil, err
		}
		c.source.Close()
		c = again
	}
	key := existing.WireKey
	if key == nil {
		key = newWireKey()
	}
	out, diags, err := f.renderLab(ctx, world, c, rules, render.Options{WireKey: key}, certificates(existing))
	if err != nil {
		return nil, err
	}
	if out == nil || hasErrors(diags) {
		return nil, notApplied(world, diags)
	}
	report(world, diags)
	l, err := cluster.NewLab(out)
	if err != nil {
		return nil, fail(err)
	}
	return &inCluster{client: client, lab: l, existing: existing, out: out, links: len(c.lab.Links)}, nil
}

// notApplied tells what is wrong with a topology.
func notApplied(world IO, diags []diag.Diagnostic) error {
	report(world, diags)
	fmt.Fprintf(world.Err, "%s; nothing was applied\n", summary(diags))
	return errFailed
}

func (f *deployFlags) run(ctx context.Context, world IO, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	in, err := f.prepareLab(ctx, world, &f.targetFlags, args)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := in.client.Preflight(ctx, in.lab, in.existing); err != nil {
		return fail(fmt.Errorf("%w\nnothing was applied", err))
	}
	show := newProgress(world, f.output == "json")
	defer show.end()
	show.lab(in.lab.Name, in.lab.Namespace, in.client.Context)
	if f.dryRun == "client" {
		for i := range in.out.Objects {
			show.object(cluster.Change{Action: "would apply", Object: objectName(&in.out.Objects[i])})
		}
		return nil
	}
	changes, err := f.changes(ctx, world, in)
	if errors.Is(err, errNo) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.dryRun == "none" {
		if err := in.client.Prepare(ctx, in.lab, changes); err != nil {
			return fail(fmt.Errorf("%w\nnothing was applied", err))
		}
	}
	if err := in.client.Apply(ctx, in.lab, cluster.ApplyOptions{DryRun: f.dryRun == "server", Tell: show.object}); err != nil {
		if f.dryRun == "server" {
			return fail(fmt.Errorf("%w\nnothing was changed", err))
		}
		return fail(fmt.Errorf("%w\nnot everything was applied; the same command goes on from here", err))
	}
	show.applied(f.dryRun == "server", time.Since(began))
	if f.dryRun == "server" {
		return nil
	}
	if err := in.client.Settle(ctx, in.lab, changes); err != nil {
		return fail(err)
	}
	if !f.wait {
		return nil
	}
	waiting := ctx
	if f.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	found := cluster.Found{Name: in.lab.Name, Namespace: in.lab.Namespace}
	counting, stop := context.WithCancel(waiting)
	defer stop()
	show.followLinks(counting, in.links, func(ctx context.Context) (int, bool) { return in.client.LinksUp(ctx, found) })
	if err := in.client.WaitReady(waiting, in.lab, show.progress); err != nil {
		show.end()
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w\n--timeout %s is over; 'c9s status %s' tells how it goes on", err, f.timeout, in.lab.Name)
		}
		return fail(err)
	}
	show.ready(time.Since(began))
	// The lab runs; of what its commands did this only tells.
	if nodes, err := in.client.Unfinished(ctx, found); err == nil {
		show.commands(nodes)
	}
	return nil
}

// errNo is the answer to a question that ends the command without harm.
var errNo = errors.New("no")

// changes finds what the deploy does to a lab that is there, and asks before
// devices are stopped.
func (f *deployFlags) changes(ctx context.Context, world IO, in *inCluster) (cluster.Diff, error) {
	if in.existing.Lab == "" {
		return cluster.Diff{}, nil
	}
	d, err := in.client.Diff(ctx, in.lab)
	if err != nil {
		return d, fail(err)
	}
	stops := d.Disruptive()
	if f.output == "" {
		for _, n := range stops {
			fmt.Fprintf(world.Err, "  %s: %s (%s)\n", show.Cell(strings.Join(n.Nodes, ",")), n.Action, show.Cell(strings.Join(n.Why, ", ")))
		}
	}
	if len(stops) == 0 || f.yes || f.dryRun != "none" {
		return d, nil
	}
	ok, err := confirm(ctx, world, "Go on?")
	if err == nil && !ok {
		err = errNo
	}
	return d, err
}
