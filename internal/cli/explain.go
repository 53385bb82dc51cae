package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/topology"
)

func newExplain(world IO) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [FIELD | CODE]",
		Short: "Explain a field of the topology or the code of a diagnostic",
		Long: `Explain prints the meaning of a topology field in containerlab and what c9s does with it,
or the cause and remedy of a diagnostic. Without an argument it lists all fields.`,
		Example: "  c9s explain binds\n  c9s explain topology.nodes.r1.certificate.issue\n  c9s explain mgmt.ipv4-subnet\n  c9s explain image-missing",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return append(topology.Keys(), codeNames()...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, f := range topology.Vocabulary() {
					fmt.Fprintf(world.Out, "%-52s %s\n", f.Path, f.Treatment)
				}
				return nil
			}
			return explain(world.Out, args[0])
		},
	}
}

// explain prints the fields and the code called name; a few names are both.
func explain(w io.Writer, name string) error {
	fields, near := topology.Lookup(name)
	code, isCode := diag.Explain(diag.Code(name))
	if len(fields) == 0 && !isCode {
		if near == "" {
			near = strictyaml.Nearest(name, codeNames())
		}
		hint := "\"c9s explain\" lists all fields, and docs/reference/diagnostics.md all codes"
		if near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return fail(fmt.Errorf("%q is neither a field of containerlab nor a code of c9s; %s", name, hint))
	}
	for i, f := range fields {
		if i > 0 {
			fmt.Fprintln(w)
		}
		explainField(w, f)
	}
	if isCode {
		if len(fields) > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "CODE:   %s\nSTAGE:  %s\nTEXT:   %s\nCAUSE:  %s\nREMEDY: %s\n", code.Code, code.Stage, code.Text, code.Cause, code.Remedy)
	}
	return nil
}

func codeNames() []string {
	var names []string
	for _, e := range diag.Explanations() {
		names = append(names, string(e.Code))
	}
	return names
}

func explainField(w io.Writer, f topology.Field) {
	fmt.Fprintf(w, "FIELD:        %s\nTREATMENT:    %s\nCONTAINERLAB: %s\nC9S:          %s\n", f.Path, f.Treatment, f.Meaning, f.Here)
	if f.Example != "" {
		fmt.Fprintf(w, "EXAMPLE:\n    %s\n", strings.ReplaceAll(f.Example, "\n", "\n    "))
	}
}
