package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/c9s-lab/c9s/pkg/topology"
	"github.com/spf13/cobra"
)

func newExplain(world IO) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [FIELD]",
		Short: "Say what happens to a containerlab field here",
		Long: `Explain says what a field of the topology file means in containerlab and what c9s
does with it. Without a field it lists them all.`,
		Example: "  c9s explain binds\n  c9s explain topology.nodes.r1.certificate.issue\n  c9s explain mgmt.ipv4-subnet",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return topology.Keys(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, f := range topology.Vocabulary() {
					fmt.Fprintf(world.Out, "%-52s %s\n", f.Path, f.Treatment)
				}
				return nil
			}
			found, near := topology.Lookup(args[0])
			if len(found) == 0 {
				hint := "`c9s explain` lists all fields"
				if near != "" {
					hint = fmt.Sprintf("did you mean %q?", near)
				}
				return fail(fmt.Errorf("containerlab has no field %q; %s", args[0], hint))
			}
			for i, f := range found {
				if i > 0 {
					fmt.Fprintln(world.Out)
				}
				explain(world.Out, f)
			}
			return nil
		},
	}
}

func explain(w io.Writer, f topology.Field) {
	fmt.Fprintf(w, "FIELD:        %s\nTREATMENT:    %s\nCONTAINERLAB: %s\nC9S:          %s\n", f.Path, f.Treatment, f.Meaning, f.Here)
	if f.Example != "" {
		fmt.Fprintf(w, "EXAMPLE:\n    %s\n", strings.ReplaceAll(f.Example, "\n", "\n    "))
	}
}
