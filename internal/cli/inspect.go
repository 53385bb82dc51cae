//go:build !nocluster

package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/status"
)

type inspectFlags struct {
	labRef
	all     bool
	wide    bool
	details bool
	format  string
}

func newInspect(world IO) *cobra.Command {
	f := &inspectFlags{}
	cmd := &cobra.Command{
		Use:   "inspect [LAB|TOPO]",
		Short: "Print the nodes of a lab in containerlab's format",
		Long: `Inspect prints what containerlab's inspect prints: the nodes of a lab, or of all labs
(--all), with kind, image, state and management addresses, as a table, as CSV or as JSON
with containerlab's keys. --details prints all details of the containers, as JSON with
containerlab's keys. The states are those of c9s (ready, booting, ...), node names have no
prefix, and container_id is the name of the Pod. For links, reasons and restarts, use 'c9s
status'.`,
		Example: `  c9s inspect
  c9s inspect topo.clab.yml --wide
  c9s inspect --all -f json
  c9s inspect interfaces R1`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&f.all, "all", "a", false, "print the nodes of all labs, or of those in the namespace of -n")
	fs.BoolVarP(&f.wide, "wide", "w", false, "also print namespace, worker, Pod, and exposed address and ports")
	fs.BoolVar(&f.details, "details", false, "print all details of the containers, as JSON")
	fs.StringVarP(&f.format, "format", "f", "table", "table, json or csv")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"table", "json", "csv"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(newInspectInterfaces(world))
	return cmd
}

func (f *inspectFlags) run(ctx context.Context, world IO, args []string) error {
	print, err := f.printer()
	if err != nil {
		return err
	}
	if f.all && (len(args) > 0 || f.topo != "") {
		return errors.New("--all excludes a lab: omit one of the two")
	}
	client, labs, err := f.labs(ctx, world, args)
	if err != nil {
		return err
	}
	if f.details {
		return printDetails(ctx, world, client, labs)
	}
	var rows []inspectRow
	for _, found := range labs {
		if found.DataOnly {
			continue
		}
		lab, err := client.Status(ctx, found, false)
		if err != nil && f.all { // of one lab, as while it is removed: the others count
			unreadable(world, found, err)
			continue
		}
		if err != nil {
			return fail(err)
		}
		rows = append(rows, inspectRows(lab)...)
	}
	return fail(print(world.Out, rows))
}

func (f *inspectFlags) labs(ctx context.Context, world IO, args []string) (*cluster.Client, []cluster.Found, error) {
	if !f.all {
		client, found, err := f.find(ctx, world, args)
		return client, []cluster.Found{found}, err
	}
	client, err := f.connect(ctx, world)
	if err != nil {
		return nil, nil, err
	}
	labs, err := client.Labs(ctx, f.namespace)
	return client, labs, fail(err)
}

// inspectRow is one node. The keys are containerlab's, and after them c9s' own.
type inspectRow struct {
	Lab       string `json:"lab_name"`
	Topology  string `json:"labPath"`
	Name      string `json:"name"`
	PodName   string `json:"container_id"`
	Image     string `json:"image"`
	Kind      string `json:"kind"`
	State     string `json:"state"`
	Status    string `json:"status"`
	IPv4      string `json:"ipv4_address"`
	IPv6      string `json:"ipv6_address"`
	Namespace string `json:"namespace"`
	Worker    string `json:"worker"`
	Exposed   string `json:"exposed"`
	// Ports are those of the shared load balancer.
	Ports []string `json:"exposed_ports,omitempty"`
}

// inspectColumns are the columns of CSV, in the order of cells.
var inspectColumns = []string{"lab_name", "labPath", "name", "container_id", "image", "kind", "state", "status", "ipv4_address", "ipv6_address", "namespace", "worker", "exposed", "exposed_ports"}

func (r inspectRow) cells() []string {
	return []string{r.Lab, r.Topology, r.Name, r.PodName, r.Image, r.Kind, r.State, r.Status, r.IPv4, r.IPv6, r.Namespace, r.Worker, r.Exposed, strings.Join(r.Ports, " ")}
}

func inspectRows(l status.Lab) []inspectRow {
	rows := make([]inspectRow, 0, len(l.Nodes))
	for _, n := range l.Nodes {
		topology, _, _ := strings.Cut(n.Source, ":")
		up := ""
		if !n.Started.IsZero() {
			up = "Up " + age(n.Started)
		}
		rows = append(rows, inspectRow{
			Lab: l.Name, Topology: topology, Name: n.Name, PodName: n.PodName, Image: n.Image, Kind: n.Kind, State: string(n.State), Status: up,
			IPv4: address(n.IPv4), IPv6: address(n.IPv6), Namespace: l.Namespace, Worker: n.Worker, Exposed: n.Exposed,
		})
		for _, p := range n.ExposedPorts {
			rows[len(rows)-1].Ports = append(rows[len(rows)-1].Ports, p.String())
		}
	}
	return rows
}

// address is "N/A" if there is none, as in containerlab.
func address(a netip.Addr) string {
	if !a.IsValid() {
		return "N/A"
	}
	return a.String()
}

func (f *inspectFlags) printer() (func(io.Writer, []inspectRow) error, error) {
	switch f.format {
	case "table":
		return func(w io.Writer, rows []inspectRow) error { return inspectTable(w, rows, f.all, f.wide) }, nil
	case "json":
		return inspectJSON, nil
	case "csv":
		return inspectCSV, nil
	}
	return nil, fmt.Errorf("--format %q: use table, json or csv", f.format)
}

// inspectJSON groups the nodes by lab, as containerlab does.
func inspectJSON(w io.Writer, rows []inspectRow) error {
	labs := map[string][]inspectRow{}
	for _, r := range rows {
		labs[r.Lab] = append(labs[r.Lab], r)
	}
	return printJSON(w, labs)
}

func inspectCSV(w io.Writer, rows []inspectRow) error {
	out := csv.NewWriter(w)
	_ = out.Write(inspectColumns) // Error has it
	for _, r := range rows {
		_ = out.Write(r.cells())
	}
	out.Flush()
	return out.Error()
}

// exposedCell is the address outside the cluster, and below it the ports of the shared load
// balancer, a few a line.
func exposedCell(r inspectRow) string {
	lines := []string{show.Cell(r.Exposed)}
	for few := range slices.Chunk(r.Ports, 3) {
		lines = append(lines, show.Cell(strings.Join(few, " ")))
	}
	return strings.Join(lines, "\n")
}

// inspectTable is containerlab's box. Its lines are as wide as they are.
func inspectTable(w io.Writer, rows []inspectRow, all, wide bool) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleRounded)
	t.Style().Format.Header = text.FormatTitle
	t.Style().Format.HeaderAlign = text.AlignCenter
	t.Style().Options.SeparateRows = true
	head := table.Row{}
	if all {
		head = append(head, "Topology", "Lab Name")
		t.SetColumnConfigs([]table.ColumnConfig{
			{Number: 1, AutoMerge: true, VAlign: text.VAlignMiddle}, {Number: 2, AutoMerge: true, VAlign: text.VAlignMiddle},
		})
	}
	head = append(head, "Name", "Kind/Image", "State", "IPv4/6 Address")
	if wide {
		head = append(head, "Namespace", "Worker", "Pod", "Exposed")
	}
	t.AppendHeader(head)
	for _, r := range rows {
		row := table.Row{}
		add := func(cells ...string) {
			for _, c := range cells {
				row = append(row, show.Cell(c))
			}
		}
		if all {
			add(r.Topology, r.Lab)
		}
		add(r.Name)
		row = append(row, show.Cell(r.Kind)+"\n"+show.Cell(r.Image))
		add(r.State)
		row = append(row, r.IPv4+"\n"+r.IPv6)
		if wide {
			add(r.Namespace, r.Worker, r.PodName)
			row = append(row, exposedCell(r))
		}
		t.AppendRow(row)
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}
