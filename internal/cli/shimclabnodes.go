//go:build !nocluster

package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/shlex"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

type clabInspect struct {
	*clab
	all, details, wide bool
	format             string
}

func newClabInspect(world IO, f *clab) *cobra.Command {
	i := &clabInspect{clab: f}
	cmd := &cobra.Command{
		Use: "inspect", Aliases: []string{"ins", "i"}, Short: "Print the nodes of labs", Example: "  containerlab inspect --all --format json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return i.run(cmd.Context(), world) },
	}
	fs := cmd.Flags()
	fs.BoolVarP(&i.all, "all", "a", false, "of all labs")
	fs.BoolVar(&i.details, "details", false, "print all that is known of the containers, as JSON")
	fs.BoolVarP(&i.wide, "wide", "w", false, "ignored")
	fs.StringVarP(&i.format, "format", "f", "table", "table, json or csv")
	interfaces := &interfacesFlags{}
	var node []string
	sub := &cobra.Command{
		Use: "interfaces", Aliases: []string{"int", "intf"}, Short: "Print the interfaces of nodes", Example: "  containerlab inspect interfaces -t topo.clab.yml -n R1 -f json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			interfaces.nodeRef = f.ref()
			return clabInterfaces(cmd.Context(), world, interfaces, node)
		},
	}
	sub.Flags().StringSliceVarP(&node, "node", "n", nil, "nodes (default: all)")
	sub.Flags().StringVarP(&interfaces.output, "format", "f", "table", "table or json")
	cmd.AddCommand(sub)
	return cmd
}

// clabInterfaces prints interfaces under the long names of the nodes.
func clabInterfaces(ctx context.Context, world IO, f *interfacesFlags, names []string) error {
	client, found, nodes, err := f.find(ctx, world)
	if err != nil {
		return err
	}
	list, err := client.Containers(ctx, found)
	if err != nil {
		return fail(err)
	}
	short, err := shortNames(nodes, found.Name, names)
	if err != nil {
		return fail(err)
	}
	chosen := slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool { return n.Stopped || !slices.Contains(short, n.Name) })
	rows, failed := interfacesOf(ctx, client, found, chosen)
	for i := range rows {
		if at := slices.IndexFunc(list, func(c cluster.Container) bool { return c.Name == rows[i].Name }); at >= 0 {
			rows[i].Name = list[at].LongName
		}
	}
	if f.output == "json" {
		err = printJSON(world.Out, rows)
	} else {
		err = printInterfaces(world, rows)
	}
	return fail(errors.Join(err, failed))
}

// labs finds the lab or, with --all, all of them.
func (i *clabInspect) labs(ctx context.Context, world IO) (*cluster.Client, []cluster.Found, error) {
	if i.all {
		client, err := (&targetFlags{}).connect(ctx, world)
		if err != nil {
			return nil, nil, err
		}
		labs, err := client.Labs(ctx, "")
		return client, labs, fail(err)
	}
	ref := i.ref()
	client, found, _, err := ref.find(ctx, world)
	return client, []cluster.Found{found}, err
}

func (i *clabInspect) run(ctx context.Context, world IO) error {
	client, labs, err := i.labs(ctx, world)
	if err != nil {
		return err
	}
	if i.details {
		return printDetails(ctx, world, client, labs)
	}
	list, err := containersOf(ctx, client, labs)
	if err != nil {
		return fail(err)
	}
	mgmt := managements(ctx, client, list)
	rows := []clabRow{}
	for n := range list {
		rows = append(rows, clabRowOf(&list[n], mgmt[list[n].Lab]))
	}
	return fail(printClabRows(world.Out, rows, i.format, i.all))
}

// printDetails prints the containers of labs by lab, as containerlab's inspect --details does.
func printDetails(ctx context.Context, world IO, client *cluster.Client, labs []cluster.Found) error {
	list, err := containersOf(ctx, client, labs)
	if err != nil {
		return fail(err)
	}
	mgmt := managements(ctx, client, list)
	out := map[string][]containerDetail{}
	for i := range list {
		out[list[i].Lab.Name] = append(out[list[i].Lab.Name], detailOf(&list[i], mgmt[list[i].Lab]))
	}
	return fail(printJSON(world.Out, out))
}

// managements returns the management section of one Pod of each lab: lengths and gateways are
// those of the lab.
func managements(ctx context.Context, client *cluster.Client, list []cluster.Container) map[cluster.Found]*contract.Mgmt {
	out := map[cluster.Found]*contract.Mgmt{}
	for _, c := range list {
		if out[c.Lab] == nil && (c.Directory.IPv4.IsValid() || c.Directory.IPv6.IsValid()) {
			if m, err := client.Management(ctx, c.Lab, c.Deployment); err == nil {
				out[c.Lab] = m
			}
		}
	}
	return out
}

// clabRow is a node with the keys of containerlab's inspect.
type clabRow struct {
	Lab      string   `json:"lab_name"`
	Path     string   `json:"labPath"`
	AbsPath  string   `json:"absLabPath"`
	Name     string   `json:"name"`
	ID       string   `json:"container_id"`
	Image    string   `json:"image"`
	Kind     string   `json:"kind"`
	Group    string   `json:"group"`
	State    string   `json:"state"`
	Status   string   `json:"status"`
	IPv4     string   `json:"ipv4_address"`
	IPv6     string   `json:"ipv6_address"`
	Ports    []string `json:"ports"`
	Owner    string   `json:"owner"`
	PodName  string   `json:"pod,omitempty"`
	NSpace   string   `json:"namespace"`
	Workload string   `json:"worker,omitempty"`
}

func clabRowOf(c *cluster.Container, mgmt *contract.Mgmt) clabRow {
	a := addressesOf(c, mgmt)
	row := clabRow{
		Lab: c.Lab.Name, Path: c.Source, Name: c.LongName, ID: shortID(c.ID), Image: c.Image, Kind: c.Kind, Group: c.Labels["clab-node-group"], State: c.Word(),
		Status: containerStatus(c), IPv4: withLength(a.IPv4addr, a.IPv4pLen), IPv6: withLength(a.IPv6addr, a.IPv6pLen), Ports: []string{}, NSpace: c.Lab.Namespace,
	}
	if file := topologyPath(c.Source); filepath.IsAbs(file) {
		row.AbsPath = file
	}
	if c.Pod != nil {
		row.PodName, row.Workload = c.Pod.Name, c.Pod.Spec.NodeName
	}
	return row
}

func printClabRows(w io.Writer, rows []clabRow, format string, all bool) error {
	switch format {
	case "json":
		labs := map[string][]clabRow{}
		for _, r := range rows {
			labs[r.Lab] = append(labs[r.Lab], r)
		}
		return printJSON(w, labs)
	case "csv":
		out := csv.NewWriter(w)
		_ = out.Write([]string{"lab_name", "labPath", "absLabPath", "name", "container_id", "image", "kind", "group", "state", "status", "ipv4_address", "ipv6_address", "ports", "owner"})
		for _, r := range rows {
			_ = out.Write([]string{r.Lab, r.Path, r.AbsPath, r.Name, r.ID, r.Image, r.Kind, r.Group, r.State, r.Status, r.IPv4, r.IPv6, strings.Join(r.Ports, " "), r.Owner})
		}
		out.Flush()
		return out.Error()
	case "table", "":
	default:
		return fmt.Errorf("--format %q: use table, json or csv", format)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatTitle
	t.Style().Format.HeaderAlign = text.AlignCenter
	t.Style().Options.SeparateRows = true
	head := table.Row{"Name", "Kind/Image", "State", "IPv4/6 Address"}
	if all {
		head = append(table.Row{"Topology", "Lab Name"}, head...)
	}
	t.AppendHeader(head)
	bare := func(a string) string { a, _, _ = strings.Cut(a, "/"); return show.Cell(a) }
	for _, r := range rows {
		row := table.Row{show.Cell(r.Name), show.Cell(r.Kind) + "\n" + show.Cell(r.Image), show.Cell(r.State), bare(r.IPv4) + "\n" + bare(r.IPv6)}
		if r.IPv4 == "N/A" {
			row[3] = "N/A\n" + bare(r.IPv6)
		}
		if all {
			row = append(table.Row{show.Cell(r.Path), show.Cell(r.Lab)}, row...)
		}
		t.AppendRow(row)
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

type clabExec struct {
	*clab
	commands, labels []string
	format           string
}

func newClabExec(world IO, f *clab) *cobra.Command {
	e := &clabExec{clab: f}
	cmd := &cobra.Command{
		Use: "exec", Short: "Run commands in nodes", Example: "  containerlab exec -t topo.clab.yml --label clab-node-name=R1 --cmd 'ip -br address'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd.Context(), world) },
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&e.commands, "cmd", nil, "command (repeatable)")
	fs.StringArrayVar(&e.labels, "label", nil, "run in the nodes with this label: KEY=VALUE or KEY")
	fs.StringVarP(&e.format, "format", "f", "plain", "plain or json")
	return cmd
}

// clabResult is the outcome of a command, with containerlab's keys.
type clabResult struct {
	Cmd    []string `json:"cmd"`
	Code   int      `json:"return-code"`
	Stdout string   `json:"stdout"`
	Stderr string   `json:"stderr"`
}

func (e *clabExec) run(ctx context.Context, world IO) error {
	if len(e.commands) == 0 {
		return errors.New("--cmd is missing")
	}
	var commands [][]string
	for _, text := range e.commands {
		argv, err := shlex.Split(text)
		if err != nil || len(argv) == 0 {
			return fmt.Errorf("--cmd %q: it is no command", text)
		}
		commands = append(commands, argv)
	}
	var filters []string
	for _, l := range e.labels {
		filters = append(filters, "label="+l)
	}
	match, err := psFilter(filters)
	if err != nil {
		return err
	}
	ref := e.ref()
	client, found, _, err := ref.find(ctx, world)
	if err != nil {
		return err
	}
	list, err := client.Containers(ctx, found)
	if err != nil {
		return fail(err)
	}
	list = slices.DeleteFunc(list, func(c cluster.Container) bool { return !match(&c) || c.Stopped })
	results := make([][]clabResult, len(list))
	bounded.Each(len(list), execAtOnce, func(i int) {
		for _, argv := range commands {
			results[i] = append(results[i], runResult(ctx, client, found, list[i].Node, argv))
		}
	})
	return fail(e.print(world, list, results))
}

func runResult(ctx context.Context, client *cluster.Client, found cluster.Found, n cluster.Node, argv []string) clabResult {
	var out, errOut cluster.Buffer
	code, err := execIn(ctx, client, found, n, argv, cluster.Streams{Out: &out, Err: &errOut})
	r := clabResult{Cmd: argv, Code: code, Stdout: out.String(), Stderr: errOut.String()}
	var missing *cluster.ProgramError
	switch {
	case errors.As(err, &missing):
		r.Code, r.Stderr = missing.Code, r.Stderr+err.Error()
	case err != nil:
		r.Code, r.Stderr = 1, r.Stderr+err.Error()
	}
	return r
}

func (e *clabExec) print(world IO, list []cluster.Container, results [][]clabResult) error {
	if e.format == "json" {
		out := map[string][]clabResult{}
		for i := range list {
			out[list[i].LongName] = results[i]
		}
		return printJSON(world.Out, out)
	}
	for i := range list {
		for _, r := range results[i] {
			fmt.Fprintf(world.Err, "Executed command node=%s command=%q return-code=%d\n", show.Cell(list[i].LongName), strings.Join(r.Cmd, " "), r.Code)
			fmt.Fprint(show.Stream(world.Out), r.Stdout)
			fmt.Fprint(show.Stream(world.Err), r.Stderr)
		}
	}
	return nil
}

// clabNetem is what an interface does to the frames that it sends, with containerlab's keys.
type clabNetem struct {
	Interface  string  `json:"interface"`
	Delay      string  `json:"delay"`
	Jitter     string  `json:"jitter"`
	Loss       float64 `json:"packet_loss"`
	Rate       int     `json:"rate"`
	Corruption float64 `json:"corruption"`
}

// netemOf describes an interface.
func netemOf(r linkEnd) clabNetem {
	i := contract.Impairment{}
	if r.Impairment != nil {
		i = *r.Impairment
	}
	name := r.Interface
	if r.Alias != "" {
		name += " (" + r.Alias + ")"
	}
	return clabNetem{name, netemTime(i.DelayMS), netemTime(i.JitterMS), i.Loss, i.RateKbit, i.Corruption}
}

type clabNetemFlags struct {
	*clab
	node, container, iface, format string
	delay, jitter                  time.Duration
	loss, corruption               float64
	rate                           int
}

// newNetem returns tools netem of a program.
func newNetem(world IO, f *clab, program string) *cobra.Command {
	cmd := &cobra.Command{Use: "netem", Short: "Impair links", Example: "  " + program + " tools netem show -n clab-mylab-R1", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	add := func(verb, short string, run func(*clabNetemFlags, context.Context) error) *clabNetemFlags {
		n := &clabNetemFlags{clab: f}
		sub := &cobra.Command{Use: verb, Short: short, Example: "  " + program + " tools netem " + verb + " -n clab-mylab-R1 -i eth1", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return run(n, cmd.Context()) }}
		fs := sub.Flags()
		fs.StringVarP(&n.node, "node", "n", "", "node, or its container")
		fs.StringVarP(&n.container, "container", "c", "", "container of the node")
		switch verb {
		case "show":
			fs.StringVarP(&n.format, "format", "f", "table", "table or json")
		case "set":
			fs.DurationVar(&n.delay, "delay", 0, "delay of each frame")
			fs.DurationVar(&n.jitter, "jitter", 0, "random deviation from the delay")
			fs.Float64Var(&n.loss, "loss", 0, "lost frames, in percent")
			fs.Float64Var(&n.corruption, "corruption", 0, "corrupted frames, in percent")
			fs.IntVar(&n.rate, "rate", 0, "limit in kbit/s")
			fallthrough
		default:
			fs.StringVarP(&n.iface, "interface", "i", "", "interface or its alias")
		}
		cmd.AddCommand(sub)
		return n
	}
	add("show", "Print what links do to frames", func(n *clabNetemFlags, ctx context.Context) error { return n.show(ctx, world) })
	add("set", "Impair what an interface sends; what is left out becomes 0", func(n *clabNetemFlags, ctx context.Context) error {
		if n.jitter > 0 && n.delay == 0 {
			return errors.New("--jitter needs --delay")
		}
		to := effective(&contract.Impairment{
			DelayMS: float64(n.delay) / float64(time.Millisecond), JitterMS: float64(n.jitter) / float64(time.Millisecond), Loss: n.loss, Corruption: n.corruption, RateKbit: n.rate,
		})
		return n.change(ctx, world, to)
	})
	add("reset", "Remove what impairs an interface", func(n *clabNetemFlags, ctx context.Context) error { return n.change(ctx, world, nil) })
	return cmd
}

// links finds the lab and, if one is named, the node: by its container's name in any lab, or by
// its own.
func (n *clabNetemFlags) links(ctx context.Context, world IO) (*links, []string, error) {
	ref := n.ref()
	name := n.node
	if name == "" {
		name = n.container
	}
	if name != "" && n.topo == "" && n.name == "" {
		c, err := openContainer(ctx, world, name)
		if err != nil {
			return nil, nil, err
		}
		ref, name = c.ref(targetFlags{}), c.Name
	}
	l, err := ref.links(ctx, world)
	if err != nil || name == "" {
		return l, nil, err
	}
	names, err := shortNames(l.nodes, l.found.Name, []string{name})
	return l, names, fail(err)
}

func (n *clabNetemFlags) show(ctx context.Context, world IO) error {
	l, names, err := n.links(ctx, world)
	if err != nil {
		return err
	}
	nodes := l.nodes
	if names != nil {
		if nodes, err = cluster.Select(l.nodes, names); err != nil {
			return fail(err)
		}
	}
	rows, err := l.rows(ctx, nodes)
	if err != nil {
		return fail(err)
	}
	by := map[string][]clabNetem{}
	for _, r := range rows {
		key := r.Node
		if len(nodes) == 1 && n.node != "" {
			key = n.node
		}
		by[key] = append(by[key], netemOf(r))
	}
	if n.format == "json" {
		return fail(printJSON(world.Out, by))
	}
	return fail(printNetem(world, by))
}

func printNetem(world IO, by map[string][]clabNetem) error {
	dashed := func(s string) string {
		if s == "" {
			return "N/A"
		}
		return s
	}
	for i, node := range slices.Sorted(maps.Keys(by)) {
		if len(by) > 1 {
			if i > 0 {
				fmt.Fprintln(world.Out)
			}
			fmt.Fprintf(world.Out, "=== Node: %s ===\n", show.Cell(node))
		}
		t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
		t.Row("Interface", "Delay", "Jitter", "Packet Loss", "Rate (kbit)", "Corruption")
		for _, r := range by[node] {
			t.Row(r.Interface, dashed(r.Delay), dashed(r.Jitter), fmt.Sprintf("%.2f%%", r.Loss), fmt.Sprint(r.Rate), fmt.Sprintf("%.2f%%", r.Corruption))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (n *clabNetemFlags) change(ctx context.Context, world IO, to *contract.Impairment) error {
	if n.node == "" && n.container == "" || n.iface == "" {
		return errors.New("name the node with -n and the interface with -i")
	}
	l, names, err := n.links(ctx, world)
	if err != nil {
		return err
	}
	row, err := l.set(ctx, names[0]+":"+n.iface, func(*links, contract.Interface, contract.Quality) contract.Quality {
		return contract.Quality{Impairment: to}
	})
	if err != nil {
		return fail(err)
	}
	return fail(printNetem(world, map[string][]clabNetem{row.Node: {netemOf(row)}}))
}
