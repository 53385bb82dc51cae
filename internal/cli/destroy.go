//go:build !nocluster

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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
		Short: "Remove a lab from the cluster",
		Long: `Destroy removes all objects of a lab, however they were applied, and the namespace
if the lab made it and nothing else is in it. The data of devices goes too, unless
--keep-data is given. Devices are ended at once; with --graceful, and with --keep-data,
they are asked to end and have ten seconds for it.`,
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
	fs.BoolVar(&f.graceful, "graceful", false, "let the devices end by themselves (10 seconds); the default with --keep-data")
	fs.BoolVar(&f.wait, "wait", true, "wait until everything is gone")
	fs.DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long to wait")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (f *destroyFlags) run(ctx context.Context, world IO, args []string) error {
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	if !f.yes {
		ok, err := confirm(ctx, world, fmt.Sprintf("Remove lab %s from namespace %s (context %s)?", show.Cell(found.Name), found.Namespace, client.Context))
		if err != nil || !ok {
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
	fmt.Fprintf(world.Err, "lab %s: %d objects removed (%.1f s)\n", found.Name, removed, time.Since(began).Seconds())
	return nil
}

// confirm asks on a terminal. Elsewhere the command line is the answer.
func confirm(ctx context.Context, world IO, question string) (bool, error) {
	f, ok := world.In.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return true, nil
	}
	return ask(ctx, f, world.Err, question)
}

// ask reads a line that says yes or no. The end of ctx, as by Ctrl-C, is no answer.
func ask(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprintf(out, "%s [y/N] ", question)
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // what was typed before an error is no answer
		answered <- line
	}()
	var answer string
	select {
	case answer = <-answered:
	case <-ctx.Done():
	}
	if !strings.HasSuffix(answer, "\n") {
		fmt.Fprintln(out)
		return false, fail(errors.New("no answer; nothing was done"))
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	fmt.Fprintln(out, "nothing was done")
	return false, nil
}
