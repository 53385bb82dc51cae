package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/graph"
	"github.com/c9s-lab/c9s/pkg/pipeline"
)

func newGraph(world IO) *cobra.Command {
	f := &topoFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "graph [TOPO]",
		Short: "Draw a topology",
		Long: `Graph draws the nodes and links as Mermaid or Graphviz text, or as a self-contained HTML
page. It places nodes by the label graph-level, by their group or position (superspine,
spine, leaf, host), or by their distance from the edge.`,
		Example:           "  c9s graph topo.clab.yml -o html > lab.html\n  c9s graph topo.clab.yml | pbcopy",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			draw, ok := graph.Formats[output]
			if !ok {
				return fmt.Errorf("--output %q: use mermaid, dot or html", output)
			}
			ref, err := f.ref(args)
			if err != nil {
				return err
			}
			return f.drawGraph(cmd.Context(), world, ref, draw)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "mermaid", "mermaid, dot or html")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"mermaid", "dot", "html"}, cobra.ShellCompDirectiveNoFileComp))
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
