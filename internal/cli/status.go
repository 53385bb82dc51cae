//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/status"
)

type statusFlags struct {
	labRef
	watch bool
	fresh bool
	// unsaved compares running configurations with the saved ones.
	unsaved bool
	output  string
}

func newStatus(world IO) *cobra.Command {
	f := &statusFlags{}
	cmd := &cobra.Command{
		Use:   "status [LAB|TOPO]",
		Short: "Show the state of a lab's nodes and links",
		Long: `Status prints the state of every node and link, and of the lab in one word: ready,
deploying, degraded, failed or stopped. The state of links comes from the controller.
Without a controller, or with --fresh, status asks the Pods. The exit code is 0 in any
state.`,
		Example: `  c9s status
  c9s status mylab -o wide
  c9s status topo.clab.yml -w`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&f.watch, "watch", "w", false, "watch, and print every change")
	fs.BoolVar(&f.fresh, "fresh", false, "ask the Pods instead of the controller")
	fs.BoolVar(&f.unsaved, "unsaved", false, "also mark nodes whose running configuration is not saved; asks each device")
	fs.StringVarP(&f.output, "output", "o", "", "wide, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"wide", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// watchInterval is the query interval of -w without a controller.
const watchInterval = 700 * time.Millisecond

func (f *statusFlags) run(ctx context.Context, world IO, args []string) error {
	print, err := statusPrinter(f.output)
	if err != nil {
		return err
	}
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	last, tag := "", ""
	for {
		if f.watch {
			tag = f.news(ctx, client, found, tag, last != "")
			if ctx.Err() != nil {
				return nil
			}
		}
		lab, err := client.Status(ctx, found, f.fresh)
		if err != nil {
			if f.watch && ctx.Err() != nil {
				return nil
			}
			return fail(err)
		}
		if f.unsaved {
			if err := f.mark(ctx, world, client, found, args, &lab); err != nil {
				return err
			}
		}
		var text strings.Builder
		if err := print(&text, lab); err != nil {
			return fail(err)
		}
		if shape := lab.Tag(); shape != last {
			last = shape
			out := world.Out
			if f.output == "yaml" {
				out = show.Document(out)
			}
			if _, err := io.WriteString(out, text.String()); err != nil {
				return fail(err)
			}
		}
		if !f.watch {
			return nil
		}
	}
}

// mark adds the state of each node's configuration.
func (f *statusFlags) mark(ctx context.Context, world IO, client *cluster.Client, found cluster.Found, args []string, l *status.Lab) error {
	topo, name := f.place(args)
	at := localFiles(topo, name)
	if at.dir == "" {
		return errors.New("--unsaved needs the folder of the topology: name it with --topo")
	}
	nodes, err := client.Nodes(ctx, found)
	if err != nil {
		return fail(err)
	}
	nodes = slices.DeleteFunc(nodes, func(n cluster.Node) bool { return n.Stopped })
	c, err := openConfigs(ctx, world, client, found, nodes, kinds.Builtin(), at)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	states := c.states(ctx, nodes)
	for i := range l.Nodes {
		l.Nodes[i].Config = cmp.Or(states[l.Nodes[i].Name], configUnknown)
	}
	return nil
}

// news waits until the controller has other news than those with the tag, and returns the
// tag that it has then. Where there is no controller it waits a little. The first time it
// does not wait.
func (f *statusFlags) news(ctx context.Context, client *cluster.Client, found cluster.Found, tag string, again bool) string {
	if !f.fresh {
		if tag, err := client.News(ctx, found, tag); err == nil {
			return tag
		}
	}
	if again {
		select {
		case <-time.After(watchInterval):
		case <-ctx.Done():
		}
	}
	return ""
}

func statusPrinter(output string) (func(io.Writer, status.Lab) error, error) {
	switch output {
	case "":
		return func(w io.Writer, l status.Lab) error { return printStatus(w, l, false) }, nil
	case "wide":
		return func(w io.Writer, l status.Lab) error { return printStatus(w, l, true) }, nil
	case "json":
		return func(w io.Writer, l status.Lab) error { return printJSON(w, l) }, nil
	case "yaml":
		return func(w io.Writer, l status.Lab) error {
			data, err := yaml.Marshal(l)
			if err == nil {
				_, err = w.Write(data)
			}
			return err
		}, nil
	}
	return nil, fmt.Errorf("--output %q: use wide, json or yaml", output)
}

// printStatus prints tables as kubectl does.
func printStatus(w io.Writer, l status.Lab, wide bool) error {
	up, links := l.LinksUp()
	ready, nodes := l.Ready()
	where := ""
	if l.Source == "pods" {
		where = "; from the Pods"
	}
	fmt.Fprintf(w, "lab %s (namespace %s): %s; %d of %s ready, %d of %s up%s\n\n", show.Cell(l.Name), show.Cell(l.Namespace), show.Cell(string(l.State)),
		ready, diag.Count(nodes, "node"), up, diag.Count(links, "link"), where)
	t := show.NewTable(printers.GetNewTabWriter(w))
	head := []string{"NODE", "KIND", "STATE", "RESTARTS", "MGMT", "WORKER", "AGE"}
	if wide {
		head = []string{"NODE", "KIND", "STATE", "RESTARTS", "MGMT-IPV4", "MGMT-IPV6", "EXPOSED", "MESH", "WORKER", "POD", "AGE", "IMAGE"}
	}
	marked := slices.ContainsFunc(l.Nodes, func(n status.Node) bool { return n.Config != "" })
	if marked {
		head = append(head, "CONFIG")
	}
	t.Row(append(head, "REASON")...)
	for _, n := range l.Nodes {
		state := string(n.State)
		if n.Age != nil {
			state += old(*n.Age)
		}
		cells := []string{n.Name, dash(n.Kind), state, strconv.Itoa(n.Restarts), addr(n.IPv4, n.IPv6), dash(n.Worker), age(n.Started)}
		if wide {
			cells = []string{n.Name, dash(n.Kind), state, strconv.Itoa(n.Restarts), addr(n.IPv4), addr(n.IPv6), dash(n.Exposed), dash(mesh(n)), dash(n.Worker), dash(n.PodName), age(n.Started), dash(n.Image)}
		}
		if marked {
			cells = append(cells, n.Config)
		}
		t.Row(append(cells, oneLine(n.Reason))...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printCommands(w, l)
	printLeftover(w, l)
	if len(l.Links) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t = show.NewTable(printers.GetNewTabWriter(w)) // a writer remembers the widths of its columns
	head = []string{"LINK", "", "STATE", "RTT", "DROPS", "DATAPATH"}
	if wide {
		head = []string{"LINK", "", "STATE", "CARRIER", "RTT", "DROPS", "TX", "RX", "DATAPATH", "IMPAIRMENT", "ID"}
	}
	t.Row(append(head, "REASON")...)
	for _, k := range l.Links {
		state := string(k.State) + old(k.Age)
		far := k.Kind
		if k.B.Node != "" {
			far = k.B.Node + ":" + k.B.Interface
		}
		cells := []string{k.A.Node + ":" + k.A.Interface, far, state, rtt(k.RTT), strconv.FormatUint(k.Drops, 10), dash(k.Datapath)}
		if wide {
			cells = []string{k.A.Node + ":" + k.A.Interface, far, state, carrier(k), rtt(k.RTT), strconv.FormatUint(k.Drops, 10), size(k.TxBytes), size(k.RxBytes), dash(k.Datapath), dash(k.Impairments()), strconv.Itoa(int(k.ID))}
		}
		t.Row(append(cells, oneLine(k.Reason))...)
	}
	return t.Flush()
}

// mesh describes the node's end of the management network, and how many of its peers are
// reachable.
func mesh(n status.Node) string {
	if n.MeshPeers == 0 {
		return n.Mesh
	}
	return fmt.Sprintf("%s %d/%d", n.Mesh, n.MeshPeers-len(n.MeshLost), n.MeshPeers)
}

// old returns the age of an answer in words, or "" if it is current.
func old(seconds float64) string {
	if !status.Old(seconds) {
		return ""
	}
	return fmt.Sprintf(" (%s ago)", duration.HumanDuration(time.Duration(seconds*float64(time.Second))))
}

// printLeftover reports what removed nodes left.
func printLeftover(w io.Writer, l status.Lab) {
	for _, left := range l.Leftover {
		name := left.Nodes
		if name == "" {
			name = left.Pod
		}
		fmt.Fprintf(w, "  %s is no longer in the topology but still in the cluster: c9s deploy prunes it\n", show.Cell(name))
	}
}

// printCommands reports commands that failed or have not ended.
func printCommands(w io.Writer, l status.Lab) {
	for _, n := range l.Nodes {
		for _, c := range n.Unfinished() {
			fmt.Fprintf(w, "  %s: %s\n", show.Cell(n.Name), show.Cell(oneLine(c.String())))
		}
	}
}

func addr(list ...netip.Addr) string {
	for _, a := range list {
		if a.IsValid() {
			return a.String()
		}
	}
	return "-"
}

func age(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, time.Since(t))) // this machine's clock may be behind
}

func rtt(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return strconv.FormatFloat(ms, 'f', 2, 64) + "ms"
}

func size(n uint64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	f, i := float64(n), 0
	for f >= 1000 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	return strconv.FormatFloat(f, 'f', min(i, 1), 64) + units[i]
}

func carrier(k status.Link) string {
	word := func(e status.End) string {
		switch {
		case !e.Known:
			return "?"
		case e.Carrier:
			return "up"
		}
		return "down"
	}
	if k.B.Node == "" {
		return word(k.A)
	}
	return word(k.A) + "/" + word(k.B)
}

// oneLine keeps tables tables.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return s
}
