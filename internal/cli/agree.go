//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// The questions of a deploy before it changes an existing lab.

// claimedBy explains why a command waits.
func claimedBy(world IO, holder string) {
	fmt.Fprintf(world.Err, "another client has claimed the lab: %s; waiting to see whether it is still active\n", show.Cell(holder))
}

// agreeNamespace asks before it sets the Pod Security level of a namespace that the lab did
// not create.
func (f *deployFlags) agreeNamespace(ctx context.Context, world IO, in *inCluster) error {
	if !in.existing.SetsLevel(in.lab) {
		return nil
	}
	fmt.Fprintf(world.Err, "  namespace %s: set the Pod Security level of the whole namespace to privileged until the lab is destroyed; the sidecars need it to create interfaces\n", in.lab.Namespace)
	if f.yes {
		return nil
	}
	return confirm(ctx, world, "Set the Pod Security level?", "--yes")
}

// diff returns what the deploy changes in an existing lab.
func (in *inCluster) diff(ctx context.Context) (cluster.Diff, error) {
	if in.existing.Lab == "" {
		return cluster.Diff{}, nil
	}
	return in.client.Diff(ctx, in.lab)
}

// agree returns what the deploy changes in an existing lab, and asks before it stops devices
// or deletes objects. Prune of the result contains only objects that the user agreed to.
func (f *deployFlags) agree(ctx context.Context, world IO, in *inCluster) (cluster.Diff, error) {
	d, err := in.diff(ctx)
	if err != nil {
		return d, fail(err)
	}
	return f.agreeTo(ctx, world, d)
}

func (f *deployFlags) agreeTo(ctx context.Context, world IO, d cluster.Diff) (cluster.Diff, error) {
	f.consequences(world, d)
	var objects, data []cluster.Prune
	for _, p := range d.Prune {
		if p.Data {
			data = append(data, p)
		} else {
			objects = append(objects, p)
		}
	}
	if len(d.Disruptive())+len(objects) > 0 && !f.yes {
		if err := confirm(ctx, world, "Nodes restart or objects are deleted. Continue?", "--yes"); err != nil {
			return d, err
		}
	}
	d.Prune = objects
	if len(data) == 0 {
		return d, nil
	}
	deleteData := f.deleteData
	if !deleteData && !f.yes {
		question := fmt.Sprintf("Delete the saved data of removed nodes (%s)?", names(data))
		var err error
		if deleteData, err = askTerminal(ctx, world, question, "--delete-data, or --yes to keep it"); err != nil {
			return d, err
		}
	}
	if deleteData {
		d.Prune = append(d.Prune, data...)
	} else {
		fmt.Fprintf(world.Err, "  kept the saved data of removed nodes: %s (--delete-data deletes it)\n", names(data))
	}
	return d, nil
}

// consequences prints what a deploy stops, deletes and leaves.
func (f *deployFlags) consequences(world IO, d cluster.Diff) {
	if f.output != "" {
		return
	}
	for _, n := range d.Disruptive() {
		fmt.Fprintf(world.Err, "  %s: %s (%s)\n", show.Cell(strings.Join(n.Nodes, ",")), n.Action, show.Cell(strings.Join(n.Why, ", ")))
	}
	if objects := slices.DeleteFunc(slices.Clone(d.Prune), func(p cluster.Prune) bool { return p.Data }); len(objects) > 0 {
		fmt.Fprintf(world.Err, "  delete %s: %s\n", diag.Count(len(objects), "object"), names(objects))
	}
	for _, o := range d.Foreign {
		fmt.Fprintf(world.Err, "  keep %s: c9s did not apply it (%s did); delete it yourself if you no longer need it\n", show.Cell(o.Object), show.Cell(strings.Join(o.Managers, ", ")))
	}
}

// namesShown is how many objects one line names; c9s diff names all.
const namesShown = 12

func names(objects []cluster.Prune) string {
	var out []string
	for i, p := range objects {
		if i == namesShown {
			out = append(out, fmt.Sprintf("and %d more (c9s diff lists them)", len(objects)-i))
			break
		}
		out = append(out, show.Cell(p.Object))
	}
	return strings.Join(out, ", ")
}
