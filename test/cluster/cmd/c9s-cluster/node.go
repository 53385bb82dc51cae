package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/test/cluster/internal/bringup"
	"github.com/c9s-lab/c9s/test/cluster/internal/node"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

func nodeCommand(name *string) *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Fail a worker, or bring it back"}
	for _, action := range []struct {
		use, short string
		do         func(context.Context, site.Node) error
	}{
		{"stop N", "Kill a worker with its kubelet and containers", bringup.StopNode},
		{"start N", "Boot a stopped worker", bringup.StartNode},
		{"cut N", "Part a worker from the network", bringup.CutNode},
		{"heal N", "Join a worker to the network again", bringup.HealNode},
	} {
		cmd.AddCommand(&cobra.Command{
			Use:   action.use,
			Short: action.short,
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				n, err := findWorker(*name, args[0])
				if err != nil {
					return err
				}
				return action.do(cmd.Context(), n)
			},
		})
	}
	cmd.AddCommand(nodeClockCommand(name), nodeExecCommand(name))
	return cmd
}

func nodeClockCommand(name *string) *cobra.Command {
	var offset time.Duration
	cmd := &cobra.Command{
		Use:   "clock N --offset=10m",
		Short: "Boot a worker again with a clock that is off (builds its programs a second time)",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := findWorker(*name, args[0])
			if err != nil {
				return err
			}
			return bringup.SetClock(cmd.Context(), n, offset, func(line string) { fmt.Fprintln(os.Stderr, line) })
		},
	}
	cmd.Flags().DurationVar(&offset, "offset", 0, "seconds by which the clock is ahead, or behind if negative; 0 is the machine's clock")
	return cmd
}

func nodeExecCommand(name *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec N COMMAND...",
		Short: "Run a command in a worker's namespaces (also `control`)",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := findWorker(*name, args[0])
			if err != nil {
				return err
			}
			pid, running := node.Running(n)
			if !running {
				return fmt.Errorf("node %s is stopped: `c9s-cluster node start %s`", n.Name(), n.Name())
			}
			enter := exec.CommandContext(cmd.Context(), "nsenter", append([]string{"--target", fmt.Sprint(pid), "--all", "--"}, args[1:]...)...)
			enter.Stdin, enter.Stdout, enter.Stderr = os.Stdin, os.Stdout, os.Stderr
			return enter.Run()
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the worker is the command's
	return cmd
}

func findWorker(cluster, name string) (site.Node, error) {
	c, err := site.Load(cluster)
	if err != nil {
		return site.Node{}, err
	}
	if name == c.Control().Name() {
		return c.Control(), nil
	}
	return bringup.Worker(c, name)
}
