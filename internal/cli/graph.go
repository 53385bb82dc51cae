package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/graph"
	"github.com/c9s-lab/c9s/pkg/pipeline"
)

// graphFormats are the formats of graph.
var graphFormats = slices.Sorted(maps.Keys(graph.Formats))

// liveGraph draws a running lab, if the flags ask for one. draw is nil for a page that is
// served.
type liveGraph func(ctx context.Context, args []string, draw graph.Writer) (asked bool, err error)

func newGraph(world IO) *cobra.Command {
	f := &topoFlags{}
	var output string
	var live liveGraph
	cmd := &cobra.Command{
		Use:   "graph [TOPO|LAB]",
		Short: "Draw a topology, or a running lab",
		Long: `Graph draws the nodes and links as Mermaid or Graphviz text, as a self-contained HTML
page, as a picture (svg), for draw.io, or as JSON. It places nodes by the label graph-level,
by their position, group or name (superspine, spine, leaf, host), or by their distance from
nodes that are already placed. With --live, it draws the running lab with the states of its
nodes and links. Without --output, it serves a page at a loopback address and updates it
until you press Ctrl-C; with --output, it writes the current state.`,
		Example: `  c9s graph topo.clab.yml -o html > lab.html
  c9s graph topo.clab.yml | pbcopy
  c9s graph topo.clab.yml -o drawio > lab.drawio`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			draw, ok := graph.Formats[output]
			if !ok {
				return fmt.Errorf("--output %q: use one of %s", output, strings.Join(graphFormats, ", "))
			}
			running := draw
			if !cmd.Flags().Changed("output") {
				running = nil
			}
			if asked, err := live(cmd.Context(), args, running); asked {
				return err
			}
			ref, err := f.ref(args)
			if err != nil {
				return err
			}
			return f.drawGraph(cmd.Context(), world, ref, draw)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "mermaid", strings.Join(graphFormats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(graphFormats, cobra.ShellCompDirectiveNoFileComp))
	live = addLiveGraph(cmd, world, f)
	return cmd
}

func (f *topoFlags) drawGraph(ctx context.Context, world IO, ref string, draw graph.Writer) error {
	f.allowMissing = true
	c, err := f.compile(ctx, world, ref, pipeline.Input{})
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Lab == nil || hasErrors(c.Diags) {
		report(world, c.Diags)
		fmt.Fprintln(world.Err, summary(c.Diags))
		return errFailed
	}
	return fail(draw(world.Out, graph.New(c.Lab)))
}
