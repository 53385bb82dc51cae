//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
)

type destroyFlags struct {
	labRef
	keepData bool
	graceful bool
	wait     bool
	timeout  time.Duration
	yes      bool
}

func newDestroy(world IO) *cobra.Command {
	f := &destroyFlags{labRef: labRef{data: true}}
	cmd := &cobra.Command{
		Use:   "destroy [TOPO|LAB]",
		Short: "Delete a lab from the cluster",
		Long: `Destroy deletes every object of a lab, no matter how it was applied. It deletes the
namespace if the lab created it and nothing else is in it. It deletes the data of devices
too, unless you set --keep-data. Devices are killed at once; with --graceful or
--keep-data, they have ten seconds to stop.`,
		Example: `  c9s destroy topo.clab.yml
  c9s destroy mylab --keep-data`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("graceful") {
				f.graceful = f.keepData
			}
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&f.keepData, "keep-data", false, "keep the devices' volumes, keys and allocations for the next deploy")
	fs.BoolVar(&f.graceful, "graceful", false, "give devices 10 seconds to stop (default with --keep-data)")
	fs.BoolVar(&f.wait, "wait", true, "wait until everything is deleted")
	fs.DurationVar(&f.timeout, "timeout", 5*time.Minute, "time limit")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

func (f *destroyFlags) run(ctx context.Context, world IO, args []string) error {
	if err := notEmpty(args); err != nil {
		return err
	}
	if !f.yes {
		if _, err := terminal(world, "Delete the lab?", "--yes"); err != nil {
			return err
		}
	}
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	if !f.yes {
		if err := confirm(ctx, world, deleteQuestion(found, client.Context), "--yes"); err != nil {
			return err
		}
	}
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	began := time.Now()
	removed := 0
	err = client.Destroy(ctx, found.Namespace, found.Name, cluster.DestroyOptions{
		KeepData: f.keepData, Graceful: f.graceful, Wait: f.wait,
		Waiting: func(holder string) { claimedBy(world, holder) },
		Tell: func(c cluster.Change) {
			switch {
			case c.Err != nil:
			case c.Action == "deleted":
				removed++
			default:
				fmt.Fprintf(world.Err, "%s %s\n", c.Action, c.Object)
			}
		},
	})
	if err != nil {
		return fail(err)
	}
	fmt.Fprintf(world.Err, "lab %s: %d objects deleted (%.1f s)\n", found.Name, removed, time.Since(began).Seconds())
	return nil
}

func deleteQuestion(found cluster.Found, kubeContext string) string {
	return fmt.Sprintf("Delete lab %s from namespace %s (context %s)?", show.Cell(found.Name), found.Namespace, kubeContext)
}
