//go:build !nocluster

package cli

import (
	"context"
	"errors"
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
	"github.com/c9s-lab/c9s/pkg/policy"
)

func newLink(world IO) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link",
		Short: "Show and change the quality of links while the lab runs",
		Long: `Link shows and changes the delay, loss and rate of links in a running lab. An impairment
applies to what the interface sends, within seconds, and stays when a sidecar or a Pod
restarts. The next deploy restores what the policy file declares; diff shows the difference.`,
		Example: `  c9s link show
  c9s link set R1:eth1 --delay 50ms --loss 1
  c9s link reset R1:eth1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLinkShow(world), newLinkSet(world), newLinkReset(world))
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
	row = linkEnd{Node: in.Node, Interface: in.Name, Alias: in.Alias, Impairment: effective(cluster.ImpairmentOf(in)), Declared: effective(l.declared[in.Node+":"+in.Name])}
	switch {
	case in.Wire != nil:
		row.Peer = in.Wire.PeerNode + ":" + in.Wire.PeerInterface
	case in.Local != nil:
		row.Peer = in.Local.PeerNode + ":" + in.Local.PeerInterface
	default:
		return row, false
	}
	row.Changed = !same(row.Impairment, row.Declared)
	if !row.Changed {
		row.Declared = nil
	}
	return row, true
}

// effective returns nil for an impairment that impairs nothing.
func effective(i *contract.Impairment) *contract.Impairment {
	if i == nil || *i == (contract.Impairment{Seed: i.Seed}) {
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
	t.Row("INTERFACE", "PEER", "DELAY", "JITTER", "LOSS", "RATE", "CORRUPTION", "DUPLICATION", "REORDERING", "DECLARED")
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
		t.Row(name, r.Peer, unit(i.DelayMS, "ms"), unit(i.JitterMS, "ms"), unit(i.Loss, "%"), unit(float64(i.RateKbit), "kbit/s"),
			unit(i.Corruption, "%"), unit(i.Duplication, "%"), unit(i.Reordering, "%"), declared)
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

type linkSetFlags struct {
	nodeRef
	impair        policy.Impair
	delay, jitter time.Duration
	both          bool
	output        string
}

func newLinkSet(world IO) *cobra.Command {
	f := &linkSetFlags{}
	cmd := &cobra.Command{
		Use:   "set NODE:INTERFACE",
		Short: "Impair what an interface sends",
		Long: `Set changes the impairment of what an interface sends. Flags that are not given leave their
figure as it is; a figure of 0 removes it.`,
		Example: `  c9s link set R1:eth1 --delay 50ms --jitter 5ms
  c9s link set R1:eth1 --loss 100 --both
  c9s link set srl1:ethernet-1/1 --rate 10mbit`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, world, args[0])
		},
	}
	f.add(cmd, world, "t")
	fs := cmd.Flags()
	fs.DurationVar(&f.delay, "delay", 0, "delay of each frame, up to 1m")
	fs.DurationVar(&f.jitter, "jitter", 0, "random deviation from the delay")
	fs.Float64Var(&f.impair.Loss, "loss", 0, "lost frames, in percent")
	fs.StringVar(&f.impair.Rate, "rate", "", "limit with a unit, such as 64kbit, 10mbit or 1gbit; 0 for none")
	fs.Float64Var(&f.impair.Corruption, "corruption", 0, "corrupted frames, in percent")
	fs.Float64Var(&f.impair.Duplication, "duplication", 0, "duplicated frames, in percent")
	fs.Float64Var(&f.impair.Reordering, "reordering", 0, "reordered frames, in percent")
	fs.BoolVar(&f.both, "both", false, "also impair what the peer sends")
	addLinkOutput(cmd, &f.output)
	return cmd
}

// figures are the flags of set that change an impairment, with what each one changes.
var figures = map[string]func(to *contract.Impairment, from contract.Impairment){
	"delay":       func(to *contract.Impairment, from contract.Impairment) { to.DelayMS = from.DelayMS },
	"jitter":      func(to *contract.Impairment, from contract.Impairment) { to.JitterMS = from.JitterMS },
	"loss":        func(to *contract.Impairment, from contract.Impairment) { to.Loss = from.Loss },
	"rate":        func(to *contract.Impairment, from contract.Impairment) { to.RateKbit = from.RateKbit },
	"corruption":  func(to *contract.Impairment, from contract.Impairment) { to.Corruption = from.Corruption },
	"duplication": func(to *contract.Impairment, from contract.Impairment) { to.Duplication = from.Duplication },
	"reordering":  func(to *contract.Impairment, from contract.Impairment) { to.Reordering = from.Reordering },
}

func (f *linkSetFlags) run(cmd *cobra.Command, world IO, arg string) error {
	var given []string
	for name := range figures {
		if cmd.Flags().Changed(name) {
			given = append(given, name)
		}
	}
	if len(given) == 0 {
		return errors.New("nothing to set: give --delay, --loss, --rate or another figure, or use reset")
	}
	if f.output != "" && f.output != "json" {
		return fmt.Errorf("--output %q: use json", f.output)
	}
	f.impair.Delay, f.impair.Jitter = f.delay.String(), f.jitter.String()
	if f.impair.Rate == "0" {
		f.impair.Rate = ""
	}
	from, err := f.impair.Compile()
	if err != nil {
		return err
	}
	return f.change(cmd.Context(), world, arg, f.both, f.output, func(_ *links, _ contract.Interface, now *contract.Impairment) *contract.Impairment {
		to := contract.Impairment{}
		if now != nil {
			to = *now
		}
		for _, name := range given {
			figures[name](&to, *from)
		}
		return effective(&to)
	})
}

func newLinkReset(world IO) *cobra.Command {
	f := &nodeRef{}
	var both, all bool
	var output string
	cmd := &cobra.Command{
		Use:     "reset NODE:INTERFACE | --all",
		Short:   "Restore the impairments that the policy declares",
		Example: "  c9s link reset R1:eth1\n  c9s link reset --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all == (len(args) == 1):
				return errors.New("name one interface as NODE:INTERFACE, or use --all")
			case output != "" && output != "json":
				return fmt.Errorf("--output %q: use json", output)
			}
			declared := func(l *links, in contract.Interface, _ *contract.Impairment) *contract.Impairment {
				return l.declared[in.Node+":"+in.Name]
			}
			if !all {
				return f.change(cmd.Context(), world, args[0], both, output, declared)
			}
			return f.resetAll(cmd.Context(), world, output, declared)
		},
	}
	f.add(cmd, world, "t")
	cmd.Flags().BoolVar(&both, "both", false, "also restore what the peer sends")
	cmd.Flags().BoolVar(&all, "all", false, "restore every link of the lab")
	addLinkOutput(cmd, &output)
	return cmd
}

// change changes the impairment of an interface, and of its peer with both, and prints them.
func (f *nodeRef) change(ctx context.Context, world IO, arg string, both bool, output string, to func(*links, contract.Interface, *contract.Impairment) *contract.Impairment) error {
	l, err := f.links(ctx, world)
	if err != nil {
		return err
	}
	row, err := l.set(ctx, arg, to)
	if err != nil {
		return fail(err)
	}
	rows := []linkEnd{row}
	if both {
		if row, err = l.set(ctx, row.Peer, to); err != nil {
			return fail(err)
		}
		rows = append(rows, row)
	}
	return fail(printEnds(world, rows, output))
}

// set changes the impairment of one interface.
func (l *links) set(ctx context.Context, arg string, to func(*links, contract.Interface, *contract.Impairment) *contract.Impairment) (linkEnd, error) {
	node, name, err := l.end(arg)
	if err != nil {
		return linkEnd{}, err
	}
	in, err := l.client.Impair(ctx, l.found, node, name, func(in contract.Interface, now *contract.Impairment) *contract.Impairment {
		return to(l, in, now)
	})
	if err != nil {
		return linkEnd{}, err
	}
	row, _ := l.row(in)
	return row, nil
}

// resetAll restores every interface that differs from what is declared.
func (f *nodeRef) resetAll(ctx context.Context, world IO, output string, to func(*links, contract.Interface, *contract.Impairment) *contract.Impairment) error {
	l, err := f.links(ctx, world)
	if err != nil {
		return err
	}
	rows, err := l.rows(ctx, l.nodes)
	if err != nil {
		return fail(err)
	}
	var reset []linkEnd
	for _, row := range rows {
		if !row.Changed {
			continue
		}
		if row, err = l.set(ctx, row.Node+":"+row.Interface, to); err != nil {
			return fail(err)
		}
		reset = append(reset, row)
	}
	return fail(printEnds(world, reset, output))
}
