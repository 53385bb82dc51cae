package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

func newKinds(world IO) *cobra.Command {
	var output, dir string
	cmd := &cobra.Command{
		Use:     "kinds",
		Short:   "List the node kinds and what each needs",
		Example: "  c9s kinds\n  c9s kinds -o wide\n  c9s kinds -o json --kinds mykinds/",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cat := kinds.Builtin()
			if dir != "" {
				own, diags := kinds.LoadDir(cat, dir)
				report(world, diags)
				if own == nil || hasErrors(diags) {
					return errFailed
				}
				cat = own
			}
			switch output {
			case "json":
				return fail(printJSON(world.Out, cat.All()))
			case "", "wide":
				return fail(printKinds(world, cat, output == "wide"))
			default:
				return fmt.Errorf("--output %q: use json or wide", output)
			}
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or wide")
	cmd.Flags().StringVar(&dir, "kinds", "", "folder with your own kinds")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "wide"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func printKinds(world IO, cat *kinds.Catalogue, wide bool) error {
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	head := []string{"KIND", "ALIASES", "RUNS AS", "STATUS"}
	if wide {
		head = append(head, "LOGIN", "LINK CHANGES", "INTERFACES")
	}
	t.Row(head...)
	for _, k := range cat.All() {
		line := []string{k.Name, dash(strings.Join(k.Aliases, ",")), runsAs(k), support(k)}
		if wide {
			login := ""
			if k.Credentials.Username != "" {
				login = k.Credentials.Username + "/" + k.Credentials.Password
			}
			line = append(line, dash(login), dash(k.LinkApplyMode), dash(k.Interfaces.Help))
		}
		t.Row(line...)
	}
	return t.Flush()
}

func runsAs(k *kinds.Kind) string {
	switch {
	case k.Refused != "":
		return "-"
	case k.RootNamespace:
		return "network"
	case k.VM:
		return "VM (KVM)"
	default:
		return "container"
	}
}

func support(k *kinds.Kind) string {
	switch {
	case k.Refused != "":
		return "refused"
	case len(k.Missing) > 0:
		return "in part"
	default:
		return "supported"
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
