//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

func newLink(world IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Impair links and take them down while the lab runs",
		Long: `Link shows and changes the delay, loss and rate of links in a running lab, and takes links down
and up. A change takes effect within about a second, and stays when a sidecar or a Pod restarts.
With --for, the sidecar takes the change back after a time, whatever happens to c9s. The next
deploy restores what the policy file declares; diff shows the difference, and --write declares
the change there.`,
		Example: `  c9s link show
  c9s link set R1:eth1 --delay 50ms --loss 1
  c9s link down R1:eth1 --for 30s
  c9s link reset R1:eth1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLinkShow(world), newLinkSet(world), newLinkReset(world), newLinkDown(world), newLinkUp(world), newLinkFlap(world))
	return cmd
}

// linkEnd is one row of the table: an interface with what is done to the frames that it sends.
type linkEnd struct {
	Node      string `json:"node"`
	Interface string `json:"interface"`
	Alias     string `json:"alias,omitempty"`
	Peer      string `json:"peer"`
	// Impairment is nil for none, Declared that of the policy if it is another one.
	Impairment *contract.Impairment `json:"impairment,omitempty"`
	Declared   *contract.Impairment `json:"declared,omitempty"`
	// Changed reports whether the two differ.
	Changed bool `json:"changed"`
	// Fault is nil if the impairment does not end by itself.
	Fault *linkFault `json:"fault,omitempty"`

	// stays is what remains after the fault.
	stays *contract.Impairment
}

// linkFault is an impairment that ends by itself.
type linkFault struct {
	contract.Fault
	EndsIn float64 `json:"endsInSeconds"`
}

// links is the connection to a lab whose links are shown or changed.
type links struct {
	client   *cluster.Client
	found    cluster.Found
	nodes    []cluster.Node
	declared map[string]*contract.Impairment // by node and interface
}

func (f *nodeRef) links(ctx context.Context, world IO) (*links, error) {
	client, found, nodes, err := f.find(ctx, world)
	if err != nil {
		return nil, err
	}
	topology, err := client.Topology(ctx, found)
	if err != nil {
		return nil, fail(err)
	}
	l := &links{client, found, nodes, map[string]*contract.Impairment{}}
	for _, t := range topology {
		l.declared[t.A.Node+":"+t.A.Interface] = t.A.Impairment
		if t.B != nil {
			l.declared[t.B.Node+":"+t.B.Interface] = t.B.Impairment
		}
	}
	return l, nil
}

// end finds NODE:INTERFACE. The interface may contain colons, the name of a node cannot.
func (l *links) end(arg string) (cluster.Node, string, error) {
	name, iface, ok := strings.Cut(arg, ":")
	if !ok || name == "" || iface == "" {
		return cluster.Node{}, "", fmt.Errorf("%q: write NODE:INTERFACE, such as R1:eth1", arg)
	}
	chosen, err := cluster.Select(l.nodes, []string{name})
	if err != nil {
		return cluster.Node{}, "", err
	}
	return chosen[0], iface, nil
}

// row describes an interface, ok is false for one that does not lead to a node.
func (l *links) row(in contract.Interface) (row linkEnd, ok bool) {
	q, ok := in.Quality()
	if !ok {
		return linkEnd{}, false
	}
	now := time.Now()
	row = linkEnd{
		Node: in.Node, Interface: in.Name, Alias: in.Alias, Peer: peerOf(&in), Impairment: effective(q.Now(now)),
		Declared: effective(l.declared[in.Node+":"+in.Name]), stays: effective(q.Impairment),
	}
	if !q.Fault.Over(now) {
		row.Fault = &linkFault{*q.Fault, q.Fault.Began.Add(q.Fault.Length()).Sub(now).Seconds()}
	}
	row.Changed = row.Fault != nil || !same(row.stays, row.Declared)
	if !row.Changed {
		row.Declared = nil
	}
	return row, true
}

// effective returns nil for an impairment that impairs nothing.
func effective(i *contract.Impairment) *contract.Impairment {
	if !i.Any() {
		return nil
	}
	return i
}

func same(a, b *contract.Impairment) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// rows reads the interfaces of nodes.
func (l *links) rows(ctx context.Context, nodes []cluster.Node) ([]linkEnd, error) {
	pods := map[string]bool{}
	names := map[string]bool{}
	for _, n := range nodes {
		pods[n.Deployment], names[n.Name] = true, true
	}
	var rows []linkEnd
	for _, pod := range slices.Sorted(maps.Keys(pods)) {
		doc, err := l.client.Links(ctx, l.found, pod)
		if err != nil {
			return nil, err
		}
		for _, in := range doc.Interfaces {
			if row, ok := l.row(in); ok && names[in.Node] {
				rows = append(rows, row)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b linkEnd) int { return strings.Compare(a.Node, b.Node) })
	return rows, nil
}

func newLinkShow(world IO) *cobra.Command {
	f := &nodeRef{}
	var output string
	cmd := &cobra.Command{
		Use:     "show [NODE[:INTERFACE]...]",
		Short:   "Show the impairments of links",
		Example: "  c9s link show\n  c9s link show R1\n  c9s link show R1:eth1 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("--output %q: use json", output)
			}
			l, err := f.links(cmd.Context(), world)
			if err != nil {
				return err
			}
			rows, err := l.chosen(cmd.Context(), args)
			if err != nil {
				return fail(err)
			}
			return fail(printEnds(world, rows, output))
		},
	}
	f.add(cmd, world, "t")
	cmd.ValidArgsFunction = f.completeEnds(world)
	addLinkOutput(cmd, &output)
	return cmd
}

func addLinkOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json prints the table as JSON")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
}

// chosen returns the rows that arguments name, all without arguments.
func (l *links) chosen(ctx context.Context, args []string) ([]linkEnd, error) {
	if len(args) == 0 {
		return l.rows(ctx, l.nodes)
	}
	var out []linkEnd
	for _, arg := range args {
		name, iface, _ := strings.Cut(arg, ":")
		nodes, err := cluster.Select(l.nodes, []string{name})
		if err != nil {
			return nil, err
		}
		rows, err := l.rows(ctx, nodes)
		if err != nil {
			return nil, err
		}
		if iface != "" {
			rows = slices.DeleteFunc(rows, func(r linkEnd) bool { return r.Interface != iface && r.Alias != iface })
			if len(rows) == 0 {
				return nil, fmt.Errorf("node %s has no link %s to another node", name, iface)
			}
		}
		out = append(out, rows...)
	}
	return out, nil
}

func printEnds(world IO, rows []linkEnd, output string) error {
	if output == "json" {
		if rows == nil {
			rows = []linkEnd{}
		}
		return printJSON(world.Out, rows)
	}
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	t.Row("INTERFACE", "PEER", "DELAY", "JITTER", "LOSS", "RATE", "CORRUPTION", "DUPLICATION", "REORDERING", "DOWN", "ENDS", "DECLARED")
	for _, r := range rows {
		name := r.Node + ":" + r.Interface
		if r.Alias != "" {
			name += " (" + r.Alias + ")"
		}
		declared := "yes"
		if r.Changed {
			declared = "no"
		}
		i := contract.Impairment{}
		if r.Impairment != nil {
			i = *r.Impairment
		}
		down, ends := "-", "-"
		if i.Down {
			down = "yes"
		}
		if r.Fault != nil {
			ends = "in " + strconv.FormatFloat(max(0, r.Fault.EndsIn), 'f', 0, 64) + "s"
		}
		t.Row(name, r.Peer, unit(i.DelayMS, "ms"), unit(i.JitterMS, "ms"), unit(i.Loss, "%"), unit(float64(i.RateKbit), "kbit/s"),
			unit(i.Corruption, "%"), unit(i.Duplication, "%"), unit(i.Reordering, "%"), down, ends, declared)
	}
	return t.Flush()
}

// unit formats a figure, "-" for 0.
func unit(v float64, name string) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + name
}
