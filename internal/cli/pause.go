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

// pauseFlags are those of pause and resume.
type pauseFlags struct {
	labRef
	resume  bool
	wait    bool
	timeout time.Duration
	yes     bool
	save    bool
}

func newPause(world IO) *cobra.Command {
	f := &pauseFlags{}
	cmd := &cobra.Command{
		Use:   "pause [LAB|TOPO]",
		Short: "Delete the Pods of a lab and keep everything else",
		Long: `Pause deletes the Pods of all nodes, which frees their CPU and memory. Claims, addresses
and all other objects stay, and resume starts the nodes again. The controller keeps running.
If a running configuration differs from the saved one, pause asks; --save saves it first.`,
		Example: "  c9s pause mylab\n  c9s pause --save",
	}
	f.command(cmd, world)
	cmd.Flags().BoolVar(&f.save, "save", false, "save the running configurations first, as 'c9s save' does")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask about configurations that are not saved")
	return cmd
}

func newResume(world IO) *cobra.Command {
	f := &pauseFlags{resume: true}
	cmd := &cobra.Command{
		Use:   "resume [LAB|TOPO]",
		Short: "Start the nodes of a paused lab",
		Long: `Resume starts the nodes that pause stopped, and waits until they are ready. Nodes that
you stopped before the pause stay stopped.`,
		Example: "  c9s resume mylab",
	}
	f.command(cmd, world)
	return cmd
}

func (f *pauseFlags) command(cmd *cobra.Command, world IO) {
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.ValidArgsFunction = completeTopo
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), world, args) }
	f.labRef.add(cmd)
	cmd.Flags().BoolVar(&f.wait, "wait", true, "wait until all nodes have stopped or are ready")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "time limit")
}

func (f *pauseFlags) run(ctx context.Context, world IO, args []string) error {
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	nodes, err := client.Nodes(ctx, found)
	if err != nil {
		return fail(err)
	}
	if !f.resume {
		running := slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool { return n.Stopped })
		topo, name := f.place(args)
		k := keepWork{save: f.save, yes: f.yes, at: localFiles(topo, name)}
		if err := k.before(ctx, world, client, found, running, kinds.Builtin(), "Pause the lab"); err != nil {
			return err
		}
	}
	pods, err := client.Pause(ctx, found, f.resume)
	if err != nil {
		return fail(err)
	}
	if len(pods) == 0 {
		fmt.Fprintf(world.Err, "lab %s: nothing to do\n", show.Cell(found.Name))
		return nil
	}
	if f.wait {
		ctx, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		if f.resume {
			err = client.WaitPods(ctx, found.Namespace, found.Name, pods)
		} else {
			for _, pod := range pods {
				if err = client.WaitNoPod(ctx, found.Namespace, pod); err != nil {
					break
				}
			}
		}
		if err != nil {
			return fail(err)
		}
	}
	word := "paused"
	if f.resume {
		word = "resumed"
	}
	fmt.Fprintf(world.Err, "lab %s: %d Pods %s\n", show.Cell(found.Name), len(pods), word)
	return nil
}

func newExtend(world IO) *cobra.Command {
	f := &labRef{}
	var by time.Duration
	cmd := &cobra.Command{
		Use:   "extend [LAB|TOPO] --by TIME",
		Short: "Postpone the expiry of a lab",
		Long: `Extend postpones the expiry of a lab that was deployed with --ttl. It adds --by to the time
of the expiry, or to the current time if that is later.`,
		Example:           "  c9s extend mylab --by 4h",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			if by <= 0 {
				return fmt.Errorf("--by %s: use a duration such as 4h", by)
			}
			client, found, err := f.find(cmd.Context(), world, args)
			if err != nil {
				return err
			}
			from := time.Now()
			if found.Expires.After(from) {
				from = found.Expires
			}
			if err := client.Extend(cmd.Context(), found, from.Add(by)); err != nil {
				return fail(err)
			}
			fmt.Fprintf(world.Err, "lab %s expires %s\n", show.Cell(found.Name), until(from.Add(by)))
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&by, "by", 0, "how much longer the lab stays, such as 4h")
	return cmd
}
