package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/fabric"
	"github.com/c9s-lab/c9s/pkg/pipeline"
)

func newFabric(world IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fabric",
		Short: "Show the fabric that fabric.yaml describes",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFabricShow(world))
	return cmd
}

func newFabricShow(world IO) *cobra.Command {
	f := &topoFlags{}
	var output, namespace string
	cmd := &cobra.Command{
		Use:   "show [NODE]",
		Short: "Print the plan of the fabric, or the configuration of a node",
		Long: `Show prints the addresses and numbers that the members of the fabric get, or the startup-config
that is generated for a node. It computes them offline, as a first render does: a lab that
runs keeps the values that it has.`,
		Example: `  c9s fabric show -t dc.clab.yml
  c9s fabric show leaf1 -t dc.clab.yml
  c9s fabric show -t dc.clab.yml -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"", "json", "yaml"}, output) {
				return fmt.Errorf("--output %q: use json or yaml", output)
			}
			return f.showFabric(cmd.Context(), world, args, namespace, output)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the lab")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *topoFlags) showFabric(ctx context.Context, world IO, args []string, namespace, output string) error {
	if err := notEmpty(args); err != nil {
		return err
	}
	c, err := f.compile(ctx, world, f.topo, pipeline.Input{Namespace: namespace})
	if err != nil {
		return err
	}
	defer c.Close()
	report(world, c.Diags)
	if c.Lab == nil || hasErrors(c.Diags) {
		return errFailed
	}
	if c.Fabric == nil {
		return fail(fmt.Errorf("%s has no fabric: write fabric.yaml next to it, or name one with --fabric", c.Source.Name))
	}
	plan := c.Fabric.Plan()
	var what any = plan
	if len(args) > 0 {
		only, err := selectNodes(c.Lab, args)
		if err != nil {
			return fail(err)
		}
		i := slices.IndexFunc(plan.Nodes, func(n *fabric.Node) bool { return only[n.Name] })
		if i < 0 {
			return fail(fmt.Errorf("node %s is no member of the fabric", args[0]))
		}
		if output == "" {
			_, err := show.Document(world.Out).Write([]byte(plan.Nodes[i].Config))
			return fail(err)
		}
		what = plan.Nodes[i]
	}
	switch output {
	case "json":
		return fail(printJSON(world.Out, what))
	case "yaml":
		return fail(printYAML(world.Out, what))
	}
	return fail(fabricTable(world, plan))
}

func fabricTable(world IO, plan *fabric.Plan) error {
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	t.Row("NODE", "KIND", "ROLE", "ROUTER ID", "AS", "VTEP", "LINKS", "VLANS", "CONFIG")
	for _, n := range plan.Nodes {
		as, vtep, config := "-", "-", "generated"
		if n.ASN != 0 {
			as = fmt.Sprint(n.ASN)
		}
		if n.IsVTEP() {
			vtep = n.VTEP.String()
		}
		if n.OwnConfig {
			config = "its own"
		}
		links := make([]string, len(n.Links))
		for i, l := range n.Links {
			links[i] = l.Interface + "=" + l.Peer
			if l.Address.IsValid() {
				links[i] = l.Interface + " " + l.Address.String() + "=" + l.Peer
			}
		}
		for _, p := range n.Access {
			links = append(links, p.Interface+" "+p.Address.String()+"="+p.Peer)
		}
		t.Row(n.Name, n.Kind, n.Role, n.RouterID.String(), as, vtep, dash(strings.Join(links, ", ")), dash(n.VLANs()), config)
	}
	return t.Flush()
}
