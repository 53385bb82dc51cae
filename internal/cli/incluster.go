//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/reach"
	"github.com/c9s-lab/c9s/pkg/render"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// inCluster is a topology rendered for a cluster, with what is there of it.
type inCluster struct {
	client   *cluster.Client
	lab      *cluster.Lab
	existing cluster.Existing
	out      *render.Output
	links    int
	// volatile are nodes whose own configuration does not survive their Pods.
	volatile []string
}

// namespacePatience is how long a deploy waits for the deletion of an earlier namespace of that
// name.
const namespacePatience = time.Minute

// changeOptions changes the options of a render for a cluster.
type changeOptions func(context.Context, *cluster.Client, cluster.Existing, *render.Options)

// prepareLab compiles and renders a topology with what the cluster already has of
// it: its allocations, wire key and certificates. A nil result with errFailed
// means that the diagnostics have been reported. With change, which a deploy has, it waits for
// a namespace that is being deleted.
func (f *labFlags) prepareLab(ctx context.Context, world IO, target *targetFlags, args []string, change changeOptions) (*inCluster, error) {
	ref, err := f.ref(args)
	if err != nil {
		return nil, err
	}
	rules, err := f.imageRules()
	if err != nil {
		return nil, err
	}
	given, err := readAllocations(f.allocations)
	if err != nil {
		return nil, err
	}
	c, err := f.compile(ctx, world, ref, pipeline.Input{Namespace: f.namespace, Recycle: f.recycle, Previous: given})
	if err != nil {
		return nil, err
	}
	defer func() { c.Close() }()
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
	if err == nil && change != nil && existing.Terminating() { // a deploy after a destroy
		fmt.Fprintf(world.Err, "waiting for the deletion of namespace %s\n", c.Lab.Namespace)
		existing, err = client.ExistingAfter(ctx, c.Lab.Namespace, namespacePatience)
	}
	if err != nil {
		return nil, fail(err)
	}
	if existing.Allocations != nil && existing.Lab == c.Lab.Name {
		if ref == "-" { // it can be read only once
			world.In = bytes.NewReader(c.Source.Data)
		}
		again, err := f.compile(ctx, world, ref, pipeline.Input{Namespace: f.namespace, Recycle: f.recycle, Previous: existing.Allocations})
		if err != nil {
			return nil, err
		}
		c.Close()
		c = again
	}
	key := existing.WireKey
	if key == nil {
		key = pipeline.NewWireKey()
	}
	options := render.Options{WireKey: key, Image: runningImage(existing, rules), Expires: existing.Expires, Owner: existing.Owner}
	if change != nil {
		change(ctx, client, existing, &options)
	}
	out, diags, err := f.renderLab(ctx, world, c, rules, options, completing(ctx, client, existing))
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
	l.Own(existing)
	return &inCluster{client: client, lab: l, existing: existing, out: out, links: len(c.Lab.Links), volatile: volatileNodes(c)}, nil
}

// maxAllocations is the maximum size of a file of allocations in bytes.
const maxAllocations = 64 << 20

// readAllocations reads a file of allocations; nil for no file.
func readAllocations(file string) (*lab.Allocations, error) {
	if file == "" {
		return nil, nil
	}
	data, err := (*reach.Reach)(nil).ReadFile(file, maxAllocations)
	if err != nil {
		return nil, fail(fmt.Errorf("--allocations %s: %w", file, topology.UnwrapPath(err)))
	}
	a, err := lab.JoinAllocations(data)
	if err != nil {
		return nil, fail(fmt.Errorf("--allocations %s: %w", file, err))
	}
	return &a, nil
}

// volatileNodes returns the nodes of kinds that save a configuration, but whose policy gives
// them no claim for it.
func volatileNodes(c *pipeline.Compiled) []string {
	var out []string
	for _, n := range c.Lab.Nodes {
		kind, ok := c.Kinds.Lookup(n.Kind)
		if ok && kind.Save != nil && kind.ReadsStartup() && (n.Policy.Persistence == nil || !n.Policy.Persistence.Enabled) {
			out = append(out, n.Name)
		}
	}
	return out
}

// runningImage returns the c9s image of the lab in the cluster if this version of c9s
// rendered it and no rule says what the image is. A deploy that does not name an image
// then restarts nothing.
func runningImage(existing cluster.Existing, rules []render.ImageRule) string {
	if !released(Version) || existing.Version != Version || render.MapImage(rules, defaultImage()) != defaultImage() {
		return ""
	}
	return existing.Image
}

// completing issues certificates, except those that the cluster has and that still fit, and
// finds out whether workers have labels for KVM if a node needs it.
func completing(ctx context.Context, client *cluster.Client, existing cluster.Existing) completer {
	issued := pipeline.Issued{CA: existing.CA, Certificates: existing.Certificates}
	return func(l *lab.Lab, plans map[string]*plan.Plan, o *render.Options) error {
		for _, p := range plans {
			if p.Needs.KVM {
				var err error
				if o.RequireKVM, err = client.KVMWorkers(ctx); err != nil {
					return fail(err)
				}
				break
			}
		}
		return fail(issued.Add(l, plans, o))
	}
}

// notApplied prints the problems of a topology.
func notApplied(world IO, diags []diag.Diagnostic) error {
	report(world, diags)
	fmt.Fprintf(world.Err, "%s; nothing was applied\n", summary(diags))
	return errFailed
}

// preflight finds what would stop a deploy.
func (in *inCluster) preflight(ctx context.Context) error {
	if err := in.client.Preflight(ctx, in.lab, in.existing); err != nil {
		return fail(fmt.Errorf("%w\nnothing was applied", err))
	}
	return nil
}
