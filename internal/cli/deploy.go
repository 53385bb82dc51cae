//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/labtest"
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
	// test runs the lab's tests when it is ready.
	test  bool
	junit string
	save  bool
	ttl   time.Duration
	// expires is ttl from the start of the command.
	expires time.Time
	owner   string
	output  string
}

func newDeploy(world IO) *cobra.Command {
	f := &deployFlags{}
	cmd := &cobra.Command{
		Use:   "deploy [TOPO]",
		Short: "Run a topology in the cluster of the current context",
		Long: `Deploy renders the topology, applies it to the cluster of the current context,
prunes objects that an earlier deploy applied and this one lacks, and waits until
every node is ready. Unchanged objects are left alone. Deploy asks before it restarts
nodes or deletes objects; without a terminal it needs --yes. It deletes the saved data of
removed nodes only with --delete-data or after a separate question. Only one client can
deploy a lab at a time. You can interrupt deploy and run it again at any time.`,
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
	fs.DurationVar(&f.timeout, "timeout", 0, "time limit (default: wait until the lab is ready or cannot become ready)")
	fs.StringVar(&f.dryRun, "dry-run", "none", "none, client (print what would be applied) or server (let the API server validate it)")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask before restarting nodes, deleting objects or setting the Pod Security level")
	fs.BoolVar(&f.deleteData, "delete-data", false, "delete the saved data of removed nodes")
	fs.StringVar(&f.allocations, "allocations", "", "file with the addresses and ids of a lab that is not in the cluster yet, from 'c9s restore'")
	fs.DurationVar(&f.ttl, "ttl", 0, "remove the lab after this time, such as 8h; 'c9s extend' postpones it (default: as before, or never)")
	fs.StringVar(&f.owner, "owner", "", "owner of the lab, for 'c9s labs' (default: your name in the cluster)")
	fs.BoolVar(&f.save, "save", false, "first save the running configurations of nodes that restart, as 'c9s save' does")
	fs.BoolVar(&f.test, "test", false, "run 'c9s test' when the lab is ready, and exit with its code")
	fs.StringVar(&f.junit, "junit", "", "write the results of --test to this file, in the format of JUnit")
	fs.StringVarP(&f.output, "output", "o", "", "json prints one event per line")
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *deployFlags) checkFlags() error {
	if !slices.Contains([]string{"none", "client", "server"}, f.dryRun) {
		return fmt.Errorf("--dry-run %q: use none, client or server", f.dryRun)
	}
	if f.output != "" && f.output != "json" {
		return fmt.Errorf("--output %q: use json", f.output)
	}
	if f.ttl < 0 || f.ttl > 0 && f.ttl < time.Minute {
		return fmt.Errorf("--ttl %s: use at least 1m", f.ttl)
	}
	if f.ttl > 0 && f.noController {
		return errors.New("--ttl needs the controller, which removes the lab: remove --no-controller")
	}
	if f.timeout < 0 {
		return fmt.Errorf("--timeout %s: use a duration, or 0 for no limit", f.timeout)
	}
	if f.test && !f.wait {
		return errors.New("--test needs a lab that is ready: remove --wait=false")
	}
	if f.junit != "" && !f.test {
		return errors.New("--junit needs --test")
	}
	return nil
}

// loadTests reads the file of tests next to the topology.
func (d *deployment) loadTests() (err error) {
	if !d.test {
		return nil
	}
	topo := d.topo
	if len(d.args) > 0 {
		topo = d.args[0]
	}
	d.tests, err = loadTests(d.world, testFile(topo, ""))
	return err
}

// runTests tests the lab.
func (d *deployment) runTests(ctx context.Context) error {
	d.show.end()
	catalogue, err := ownKinds(d.world, d.kindsDir)
	if err != nil {
		return err
	}
	found := cluster.Found{Name: d.in.lab.Name, Namespace: d.in.lab.Namespace}
	nodes, err := d.in.client.Nodes(ctx, found)
	if err != nil {
		return fail(err)
	}
	f := &testFlags{output: d.output, junit: d.junit}
	return f.test(ctx, d.world, &tested{client: d.in.client, found: found, nodes: nodes, kinds: catalogue}, d.tests)
}

// deployment is one run of deploy.
type deployment struct {
	*deployFlags
	world IO
	args  []string
	in    *inCluster
	show  *progress
	began time.Time
	// claimed is the context of the claim, which ends if another client takes the lab.
	claimed context.Context
	claim   *cluster.Claim
	changes cluster.Diff
	tests   *labtest.File
}

func (f *deployFlags) run(ctx context.Context, world IO, args []string) error {
	if err := f.checkFlags(); err != nil {
		return err
	}
	if f.ttl > 0 {
		f.expires = time.Now().Add(f.ttl)
	}
	d := &deployment{deployFlags: f, world: world, args: args}
	if err := d.loadTests(); err != nil {
		return err
	}
	in, err := f.prepareLab(ctx, world, &f.targetFlags, args, f.belong)
	if err != nil {
		return err
	}
	d.in, d.show, d.began = in, newProgress(world, f.output == "json"), time.Now()
	defer d.show.end()
	defer d.release()
	return cluster.RunSteps(ctx, d.show.step, d.steps())
}

// belong says whose the lab is and when it expires.
func (f *deployFlags) belong(ctx context.Context, client *cluster.Client, existing cluster.Existing, o *render.Options) {
	if !f.expires.IsZero() {
		o.Expires = f.expires
	}
	switch {
	case f.owner != "":
		o.Owner = f.owner
	case existing.Owner == "": // a new lab, or one of which only data was left
		o.Owner = client.User(ctx)
	}
}

// steps returns what deploy does, in order.
func (d *deployment) steps() []cluster.Step {
	check := cluster.Step{Name: "check the cluster", Run: d.check}
	switch d.dryRun {
	case "client":
		return []cluster.Step{check, {Name: "list the objects", Run: d.list}}
	case "server":
		return []cluster.Step{check, {Name: "check the objects", Run: d.dryRunServer}}
	}
	steps := []cluster.Step{
		check,
		{Name: "create the namespace", Run: d.createNamespace},
		{Name: "claim the lab", Run: d.claimLab},
		{Name: "read the current state", Run: d.refresh},
		{Name: "compare", Run: d.compare},
		{Name: "prepare the namespace", Run: d.prepareNamespace},
		{Name: "apply the objects", Run: d.apply},
		{Name: "update running Pods", Run: d.settle},
	}
	if d.wait {
		steps = append(steps, cluster.Step{Name: "wait until the lab is ready", Run: d.await})
	}
	if d.test {
		steps = append(steps, cluster.Step{Name: "test the lab", Run: d.runTests})
	}
	return steps
}

// check finds what would stop the deploy before anything is written.
func (d *deployment) check(ctx context.Context) error {
	if err := d.in.preflight(ctx); err != nil {
		return err
	}
	d.show.lab(d.in.lab.Name, d.in.lab.Namespace, d.in.client.Context)
	if len(d.in.volatile) > 0 && d.in.existing.Lab == "" && d.output == "" { // once for a lab
		fmt.Fprintf(d.world.Err, "note: what you configure on %s is lost when its Pod is replaced: run 'c9s save' and deploy with --saved, or enable persistence in the policy file\n", show.Cell(someOf(d.in.volatile)))
	}
	return nil
}

// list prints the objects that a deploy would apply.
func (d *deployment) list(context.Context) error {
	for i := range d.in.out.Objects {
		d.show.object(cluster.Change{Action: "would apply", Object: objectName(&d.in.out.Objects[i])})
	}
	return nil
}

// dryRunServer lets the API server check the objects.
func (d *deployment) dryRunServer(ctx context.Context) error {
	began := time.Now()
	var err error
	if d.in.existing.Fresh {
		err = d.in.client.DryRunElsewhere(ctx, d.in.lab, d.show.object)
	} else {
		if d.changes, err = d.in.diff(ctx); err != nil {
			return fail(err)
		}
		d.consequences(d.world, d.changes)
		err = d.in.client.Apply(ctx, d.in.lab, cluster.ApplyOptions{DryRun: true, Tell: d.show.object})
	}
	if err != nil {
		return fail(fmt.Errorf("%w\nnothing was changed", err))
	}
	d.show.applied(true, time.Since(began))
	return nil
}

// createNamespace asks before it sets the Pod Security level, and creates a namespace that
// does not exist yet.
func (d *deployment) createNamespace(ctx context.Context) error {
	if err := d.agreeNamespace(ctx, d.world, d.in); err != nil {
		return err
	}
	if !d.in.existing.Fresh {
		return nil
	}
	if err := d.in.client.EnsureNamespace(ctx, d.in.lab, d.in.existing); err != nil {
		return fail(fmt.Errorf("%w\nnothing was applied", err))
	}
	return nil
}

// claimLab claims the lab for this client. The following steps end with the claim.
func (d *deployment) claimLab(ctx context.Context) (err error) {
	d.claimed, d.claim, err = d.in.client.Claim(ctx, d.in.lab, "deploy", func(holder string) { claimedBy(d.world, holder) })
	if err != nil {
		return fail(fmt.Errorf("lab %s: %w", d.in.lab.Name, err))
	}
	return nil
}

// release gives up the claim.
func (d *deployment) release() {
	if d.claim != nil {
		d.claim.Release()
		d.claim = nil
	}
}

// refresh renders the lab again if another client has changed it before the claim.
func (d *deployment) refresh(context.Context) (err error) {
	d.in, err = d.upToDate(d.claimed, d.world, d.in, d.args)
	return err
}

// compare finds what the deploy changes and asks before it stops devices or deletes objects.
func (d *deployment) compare(context.Context) (err error) {
	if d.changes, err = d.agree(d.claimed, d.world, d.in); err != nil {
		return err
	}
	saved, err := d.keep(d.claimed)
	if err != nil || !saved {
		return err
	}
	// With saved configurations, nodes start with what has just been saved.
	if d.in, err = d.prepareLab(d.claimed, d.world, &d.targetFlags, d.args, d.belong); err != nil {
		return err
	}
	prune := d.changes.Prune
	if d.changes, err = d.in.diff(d.claimed); err != nil {
		return fail(err)
	}
	d.changes.Prune = prune
	return nil
}

// keep saves the configurations of nodes that restart with --save, and reports whether it did;
// otherwise it asks if some are not saved.
func (d *deployment) keep(ctx context.Context) (saved bool, err error) {
	var restart []string
	for _, n := range d.changes.Disruptive() {
		restart = append(restart, n.Nodes...)
	}
	if len(restart) == 0 {
		return false, nil
	}
	topo := d.topo
	if len(d.args) > 0 {
		topo = d.args[0]
	}
	found := cluster.Found{Name: d.in.lab.Name, Namespace: d.in.lab.Namespace}
	nodes, err := d.in.client.Nodes(ctx, found)
	if err != nil {
		return false, fail(err)
	}
	lost := slices.DeleteFunc(nodes, func(n cluster.Node) bool { return n.Stopped || !slices.Contains(restart, n.Name) })
	catalogue, err := ownKinds(d.world, d.kindsDir)
	if err != nil {
		return false, err
	}
	k := keepWork{save: d.save, yes: d.yes, at: localFiles(topo, "")}
	if d.output == "json" {
		k.table = d.world.Err
	}
	return d.save, k.before(ctx, d.world, d.in.client, found, lost, catalogue, "Restart")
}

// prepareNamespace sets the labels of the namespace and records which devices must restart.
func (d *deployment) prepareNamespace(context.Context) error {
	err := d.in.client.EnsureNamespace(d.claimed, d.in.lab, d.in.existing)
	if err == nil {
		err = d.in.client.ApplyExpiry(d.claimed, d.in.lab)
	}
	if err == nil {
		err = d.in.client.Prepare(d.claimed, d.in.lab, d.changes)
	}
	if err != nil {
		return fail(fmt.Errorf("%w\nnothing was applied", cluster.ClaimLost(d.claimed, err)))
	}
	return nil
}

func (d *deployment) apply(context.Context) error {
	if err := d.in.client.Apply(d.claimed, d.in.lab, cluster.ApplyOptions{Prune: d.changes.Prune, Tell: d.show.object}); err != nil {
		return fail(fmt.Errorf("%w\nnot everything was applied; run the same command again to continue", cluster.ClaimLost(d.claimed, err)))
	}
	d.show.applied(false, time.Since(d.began))
	return nil
}

// settle restarts or updates running Pods and releases the claim.
func (d *deployment) settle(context.Context) error {
	suspicious, err := d.in.client.DropInventory(d.claimed, d.in.lab)
	for _, entry := range suspicious {
		fmt.Fprintf(d.world.Err, "warning: ConfigMap %s lists %s, which is not an object of the lab; it was left alone\n", cluster.InventoryName, entry)
	}
	if err == nil {
		err = d.in.client.Settle(d.claimed, d.in.lab, d.changes)
	}
	err = cluster.ClaimLost(d.claimed, err)
	d.release()
	return fail(err)
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
	again, err := f.prepareLab(ctx, world, &f.targetFlags, args, f.belong)
	if err != nil {
		return in, err
	}
	return again, again.preflight(ctx)
}

// await waits until the lab is ready.
func (d *deployment) await(ctx context.Context) error {
	in := d.in
	waiting := ctx
	if d.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	counting, stop := context.WithCancel(waiting)
	defer stop()
	d.show.followLinks(counting, in.links, func(ctx context.Context) (int, int, bool) { return in.client.LinksUp(ctx, in.lab) })
	if err := in.client.WaitReady(waiting, in.lab, d.show.progress); err != nil {
		d.show.end()
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w\ntimed out after %s; run 'c9s status %s' to see the progress", err, d.timeout, in.lab.Name)
		}
		return fail(err)
	}
	d.show.ready(time.Since(d.began))
	// The lab runs. Commands that failed are only reported.
	if nodes, err := in.client.Unfinished(ctx, in.lab); err == nil {
		for i := range nodes {
			nodes[i].Source = in.lab.Line("Deployment/"+nodes[i].Pod, nodes[i].Source)
		}
		d.show.commands(nodes)
	}
	return nil
}
