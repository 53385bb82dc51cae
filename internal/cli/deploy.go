//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
)

type deployFlags struct {
	labFlags
	targetFlags
	wait    bool
	timeout time.Duration
	dryRun  string
	yes     bool
	// deleteData answers the question about saved data, which --yes does not.
	deleteData bool
	output     string
}

func newDeploy(world IO) *cobra.Command {
	f := &deployFlags{}
	cmd := &cobra.Command{
		Use:   "deploy [TOPO]",
		Short: "Run a topology in the cluster of the current context",
		Long: `Deploy renders the topology, applies it to the cluster of the current context,
prunes what an earlier deploy of the lab applied and this one lacks, and waits until
every node is ready. Unchanged objects are left alone. Before nodes restart or objects
are deleted it asks; without a terminal it needs --yes. The saved data of nodes that are
gone is deleted only with --delete-data or an answer of its own. One client deploys a lab
at a time. You can interrupt deploy and run it again at any time.`,
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
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask before nodes restart, objects are deleted or the namespace's Pod Security level is set")
	fs.BoolVar(&f.deleteData, "delete-data", false, "delete the saved data of nodes that the topology no longer has")
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
	if c.Lab == nil || hasErrors(c.Diags) {
		_, diags, err := f.renderLab(ctx, world, c, rules, render.Options{}, nil)
		if err != nil {
			return nil, err
		}
		return nil, notApplied(world, diags)
	}
	client, err := target.connect(ctx, world)
	if err != nil {
		return nil, err
	}
	existing, err := client.Existing(ctx, c.Lab.Namespace)
	if err != nil {
		return nil, fail(err)
	}
	if existing.Allocations != nil && existing.Lab == c.Lab.Name {
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
	out, diags, err := f.renderLab(ctx, world, c, rules, render.Options{WireKey: key}, issuing(existing))
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
	return &inCluster{client: client, lab: l, existing: existing, out: out, links: len(c.Lab.Links)}, nil
}

// issuing issues certificates; those that the cluster has and that still fit stay.
func issuing(existing cluster.Existing) certifier {
	issued := pipeline.Issued{CA: existing.CA, Certificates: existing.Certificates}
	return func(l *lab.Lab, plans map[string]*plan.Plan, o *render.Options) error {
		return fail(issued.Add(l, plans, o))
	}
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
	if err := in.preflight(ctx); err != nil {
		return err
	}
	show := newProgress(world, f.output == "json")
	defer show.end()
	show.lab(in.lab.Name, in.lab.Namespace, in.client.Context)
	switch f.dryRun {
	case "client":
		for i := range in.out.Objects {
			show.object(cluster.Change{Action: "would apply", Object: objectName(&in.out.Objects[i])})
		}
		return nil
	case "server":
		return f.dryRunServer(ctx, world, in, show)
	}
	in, err = f.change(ctx, world, in, args, show, began)
	if err != nil || !f.wait {
		return err
	}
	return f.await(ctx, in, show, began)
}

// preflight finds what would stop the deploy before anything is written.
func (in *inCluster) preflight(ctx context.Context) error {
	if err := in.client.Preflight(ctx, in.lab, in.existing); err != nil {
		return fail(fmt.Errorf("%w\nnothing was applied", err))
	}
	return nil
}

// dryRunServer lets the API server check the lab.
func (f *deployFlags) dryRunServer(ctx context.Context, world IO, in *inCluster, show *progress) error {
	began := time.Now()
	var err error
	if in.existing.Fresh {
		err = in.client.DryRunElsewhere(ctx, in.lab, show.object)
	} else {
		var d cluster.Diff
		if d, err = in.diff(ctx); err != nil {
			return fail(err)
		}
		f.consequences(world, d)
		err = in.client.Apply(ctx, in.lab, cluster.ApplyOptions{DryRun: true, Tell: show.object})
	}
	if err != nil {
		return fail(fmt.Errorf("%w\nnothing was changed", err))
	}
	show.applied(true, time.Since(began))
	return nil
}

// change makes the cluster's objects those of the lab, while no other client may. The
// lab that it returns is rendered again if another client changed it before.
func (f *deployFlags) change(ctx context.Context, world IO, in *inCluster, args []string, show *progress, began time.Time) (*inCluster, error) {
	if err := f.agreeNamespace(ctx, world, in); err != nil {
		return in, err
	}
	if in.existing.Fresh {
		if err := in.client.EnsureNamespace(ctx, in.lab, in.existing); err != nil {
			return in, fail(fmt.Errorf("%w\nnothing was applied", err))
		}
	}
	claimed, claim, err := in.client.Claim(ctx, in.lab, "deploy", func(holder string) { claimedBy(world, holder) })
	if err != nil {
		return in, fail(fmt.Errorf("lab %s: %w", in.lab.Name, err))
	}
	defer claim.Release()
	if in, err = f.upToDate(claimed, world, in, args); err != nil {
		return in, err
	}
	changes, err := f.agree(claimed, world, in)
	if err != nil {
		return in, err
	}
	err = in.client.EnsureNamespace(claimed, in.lab, in.existing)
	if err == nil {
		err = in.client.Prepare(claimed, in.lab, changes)
	}
	if err != nil {
		return in, fail(fmt.Errorf("%w\nnothing was applied", cluster.ClaimLost(claimed, err)))
	}
	if err := in.client.Apply(claimed, in.lab, cluster.ApplyOptions{Prune: changes.Prune, Tell: show.object}); err != nil {
		return in, fail(fmt.Errorf("%w\nnot everything was applied; the same command goes on from here", cluster.ClaimLost(claimed, err)))
	}
	show.applied(false, time.Since(began))
	suspicious, err := in.client.DropInventory(claimed, in.lab)
	for _, entry := range suspicious {
		fmt.Fprintf(world.Err, "warning: ConfigMap %s named %s, which is no object of the lab; it was left alone\n", cluster.InventoryName, entry)
	}
	if err == nil {
		err = in.client.Settle(claimed, in.lab, changes)
	}
	return in, fail(cluster.ClaimLost(claimed, err))
}

// upToDate reads again what the lab was rendered with, and renders it again if another
// client has changed that before the claim.
func (f *deployFlags) upToDate(ctx context.Context, world IO, in *inCluster, args []string) (*inCluster, error) {
	existing, err := in.client.Existing(ctx, in.lab.Namespace)
	if err != nil {
		return in, fail(err)
	}
	if in.existing.Same(existing) {
		in.existing = existing
		return in, nil
	}
	again, err := f.prepareLab(ctx, world, &f.targetFlags, args)
	if err != nil {
		return in, err
	}
	return again, again.preflight(ctx)
}

// await waits until the lab is ready.
func (f *deployFlags) await(ctx context.Context, in *inCluster, show *progress, began time.Time) error {
	waiting := ctx
	if f.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	found := cluster.Found{Name: in.lab.Name, Namespace: in.lab.Namespace}
	counting, stop := context.WithCancel(waiting)
	defer stop()
	show.followLinks(counting, in.links, func(ctx context.Context) (int, int, bool) { return in.client.LinksUp(ctx, found) })
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
