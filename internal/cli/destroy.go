//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

type destroyFlags struct {
	labRef
	all      bool
	mine     bool
	keepData bool
	graceful bool
	wait     bool
	timeout  time.Duration
	yes      bool
	save     bool
}

func newDestroy(world IO) *cobra.Command {
	f := &destroyFlags{labRef: labRef{data: true}}
	cmd := &cobra.Command{
		Use:   "destroy [TOPO|LAB] | --all [--mine]",
		Short: "Delete a lab from the cluster",
		Long: `Destroy deletes every object of a lab, no matter how it was applied. It deletes the
namespace if the lab created it and nothing else is in it; Kubernetes takes some seconds
more for an empty namespace, and a deploy waits for that. Destroy deletes the data of devices
too, unless you set --keep-data. Devices are killed at once; with --graceful or
--keep-data, they have ten seconds to stop. What ssh-config --install wrote on this
machine is removed. If a running configuration differs from the saved one, destroy asks;
--save saves it first.

With --all, destroy deletes all labs of the cluster, of a namespace (-n), or of which you are
the owner (--mine). It lists them, and deletes them when you have typed their names. It does
not look for configurations that are not saved.`,
		Example: `  c9s destroy topo.clab.yml
  c9s destroy mylab --keep-data
  c9s destroy --save
  c9s destroy --all --mine`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("graceful") {
				f.graceful = f.keepData
			}
			if err := f.checkAll(args); err != nil {
				return err
			}
			if f.all {
				return f.runAll(cmd.Context(), world)
			}
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.all, "all", false, "delete all labs")
	fs.BoolVar(&f.mine, "mine", false, "with --all: delete only labs of which you are the owner")
	fs.BoolVar(&f.keepData, "keep-data", false, "keep the devices' volumes, keys and allocations for the next deploy")
	fs.BoolVar(&f.graceful, "graceful", false, "give devices 10 seconds to stop (default with --keep-data)")
	fs.BoolVar(&f.wait, "wait", true, "wait until all objects of the lab are deleted")
	fs.DurationVar(&f.timeout, "timeout", 5*time.Minute, "time limit")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	fs.BoolVar(&f.save, "save", false, "save the running configurations first, as 'c9s save' does")
	return cmd
}

func (f *destroyFlags) run(ctx context.Context, world IO, args []string) error {
	d := &destroying{destroyFlags: f, world: world, args: args}
	return cluster.RunSteps(ctx, nil, []cluster.Step{
		{Name: "check the arguments", Run: d.check},
		{Name: "find the lab", Run: d.find},
		{Name: "ask", Run: d.ask},
		{Name: "keep unsaved work", Run: d.keep},
		{Name: "delete the lab", Run: d.delete},
	})
}

// destroying is one run of destroy.
type destroying struct {
	*destroyFlags
	world  IO
	args   []string
	client *cluster.Client
	lab    cluster.Found
}

// check finds what would stop the destroy before the cluster is asked.
func (d *destroying) check(context.Context) error {
	err := notEmpty(d.args)
	if err == nil && !d.yes {
		_, err = terminal(d.world, "Delete the lab?", "--yes")
	}
	return err
}

func (d *destroying) find(ctx context.Context) (err error) {
	d.client, d.lab, err = d.labRef.find(ctx, d.world, d.args)
	return err
}

func (d *destroying) ask(ctx context.Context) error {
	if d.yes {
		return nil
	}
	return confirm(ctx, d.world, deleteQuestion(d.lab, d.client.Context), "--yes")
}

// keep saves the configurations with --save, or asks if some are not saved.
func (d *destroying) keep(ctx context.Context) error {
	if d.lab.DataOnly {
		return nil
	}
	topo, name := d.place(d.args)
	k := keepWork{save: d.save, yes: d.yes, at: localFiles(topo, name)}
	if !k.save && k.yes {
		return nil
	}
	nodes, err := d.client.Nodes(ctx, d.lab)
	if err != nil {
		return fail(err)
	}
	running := slices.DeleteFunc(nodes, func(n cluster.Node) bool { return n.Stopped })
	return k.before(ctx, d.world, d.client, d.lab, running, kinds.Builtin(), "Destroy the lab")
}

// delete deletes the lab and prints the number of objects.
func (d *destroying) delete(ctx context.Context) error {
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	began := time.Now()
	removed := 0
	step := announce(d.world)
	if d.all { // the steps of several labs would mix
		step = nil
	}
	err := d.client.Destroy(ctx, d.lab.Namespace, d.lab.Name, cluster.DestroyOptions{
		KeepData: d.keepData, Graceful: d.graceful, Wait: d.wait,
		Waiting: func(holder string) { claimedBy(d.world, holder) },
		Step:    step,
		Tell: func(c cluster.Change) {
			switch {
			case c.Err != nil:
			case c.Action == "deleted":
				removed++
			default:
				fmt.Fprintf(d.world.Err, "%s %s\n", c.Action, c.Object)
			}
		},
	})
	if err != nil {
		return fail(err)
	}
	if _, err := removeSSHConfig(d.world, d.client, d.lab); err != nil {
		fmt.Fprintf(d.world.Err, "warning: ssh configuration of the lab: %v\n", err)
	}
	fmt.Fprintf(d.world.Err, "lab %s: %d objects deleted (%.1f s)\n", d.lab.Name, removed, time.Since(began).Seconds())
	return nil
}

func deleteQuestion(found cluster.Found, kubeContext string) string {
	return fmt.Sprintf("Delete lab %s from namespace %s (context %s)?", show.Cell(found.Name), found.Namespace, kubeContext)
}
