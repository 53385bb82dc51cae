//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/graph/live"
	"github.com/c9s-lab/c9s/pkg/status"
)

type topFlags struct {
	labRef
	watch    bool
	interval time.Duration
	sort     string
	output   string
}

func newTop(world IO) *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top [LAB|TOPO]",
		Short: "Show what nodes use and what links carry",
		Long: `Top shows the CPU, memory and restarts of nodes, and the rates, loss, drops and round trip
of links. On a terminal it keeps them current until you press q, and other keys choose the order;
otherwise it prints them once, or repeatedly with --watch. The sidecars measure the links. CPU and memory come
from the cluster's metrics-server, or from the kubelets if you have the right to query them.`,
		Example: `  c9s top
  c9s top mylab --sort rate
  c9s top -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&f.watch, "watch", "w", false, "print repeatedly, even if the output is not a terminal")
	fs.DurationVarP(&f.interval, "interval", "i", 2*time.Second, "time between two measurements")
	fs.StringVar(&f.sort, "sort", "name", "order: "+strings.Join(topOrders, ", "))
	fs.StringVarP(&f.output, "output", "o", "", "json prints each measurement as a line of JSON")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(topOrders, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

var topOrders = []string{"name", "cpu", "memory", "restarts", "rate", "loss", "drops", "rtt"}

// topLab is a measurement.
type topLab struct {
	Lab   string    `json:"lab"`
	Time  time.Time `json:"time"`
	Nodes []topNode `json:"nodes"`
	Links []topLink `json:"links"`
	// Unknown says why nodes have no CPU and memory.
	Unknown string `json:"unknown,omitempty"`
}

// topNode is a node. CPU is in thousandths of a processor, Memory in bytes; both are nil where
// they are unknown.
type topNode struct {
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Worker   string   `json:"worker,omitempty"`
	CPU      *float64 `json:"cpuMilli,omitempty"`
	Memory   *uint64  `json:"memoryBytes,omitempty"`
	Restarts int      `json:"restarts"`
}

// topLink is a link. Rates are in bit/s, and nil until there are two measurements.
type topLink struct {
	A        string   `json:"a"`
	B        string   `json:"b"`
	State    string   `json:"state"`
	RateA    *float64 `json:"rateA,omitempty"`
	RateB    *float64 `json:"rateB,omitempty"`
	Loss     float64  `json:"lossPercent"`
	Drops    uint64   `json:"drops"`
	RTT      float64  `json:"rttMs"`
	Datapath string   `json:"datapath,omitempty"`
}

func (f *topFlags) check() error {
	switch {
	case !slices.Contains(topOrders, f.sort):
		return fmt.Errorf("--sort %q: use one of %s", f.sort, strings.Join(topOrders, ", "))
	case f.output != "" && f.output != "json":
		return fmt.Errorf("--output %q: use json", f.output)
	case f.interval < time.Second:
		return errors.New("--interval must be at least 1s: each measurement asks every Pod")
	}
	return nil
}

func (f *topFlags) run(ctx context.Context, world IO, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	client, found, err := f.find(ctx, world, args)
	if err != nil {
		return err
	}
	nodes, err := client.Nodes(ctx, found)
	if err != nil {
		return fail(err)
	}
	terminal := f.output == "" && isTerminal(world.Out)
	var pressed <-chan byte
	if terminal {
		var interrupt context.CancelFunc
		ctx, interrupt = context.WithCancel(ctx)
		defer interrupt()
		keys, restore := readKeys(world.In, interrupt)
		defer restore()
		pressed = keys
	}
	var meter live.Meter
	var last *topLab
	for first := true; ; first = false {
		began := time.Now()
		lab, err := client.Status(ctx, found, true)
		if err != nil && ctx.Err() == nil {
			return fail(err)
		}
		if ctx.Err() != nil {
			return exitCode(exitInterrupted)
		}
		rates := meter.Read(lab.Links, began)
		if !first || terminal { // a rate is the difference of two measurements
			usage, unknown := client.Usage(ctx, found, cluster.Workers(workersOf(lab)))
			m := measured(lab, nodes, rates, usage, began)
			if unknown != nil {
				m.Unknown = unknown.Error()
			}
			last = &m
			if err := f.print(world, m, terminal); err != nil {
				return fail(err)
			}
			if !terminal && !f.watch {
				return nil
			}
		}
		wait := f.interval
		if first && !terminal {
			wait = min(wait, time.Second)
		}
		if done, err := f.wait(ctx, world, pressed, time.Until(began.Add(wait)), last); done || err != nil {
			return err
		}
	}
}

// topKeys are the keys on a terminal, with the orders that they choose.
var topKeys = map[byte]string{'n': "name", 'c': "cpu", 'm': "memory", 's': "restarts", 'r': "rate", 'l': "loss", 'd': "drops", 't': "rtt"}

const topHelp = "sort by: n name, c cpu, m memory, s restarts, r rate, l loss, d drops, t rtt; q quits"

// wait waits for the next measurement, and does meanwhile what keys ask for. It reports whether
// the user is done.
func (f *topFlags) wait(ctx context.Context, world IO, keys <-chan byte, length time.Duration, last *topLab) (bool, error) {
	next := time.After(length)
	for {
		select {
		case <-next:
			return false, nil
		case <-ctx.Done():
			return true, exitCode(exitInterrupted)
		case key := <-keys:
			switch by := topKeys[key]; {
			case key == 'q':
				return true, nil
			case by != "":
				f.sort = by
				if last != nil {
					if err := f.print(world, *last, true); err != nil {
						return true, fail(err)
					}
				}
			}
		}
	}
}

func workersOf(lab status.Lab) (out []string) {
	for _, n := range lab.Nodes {
		out = append(out, n.Worker)
	}
	return out
}

// measured joins what is known.
func measured(lab status.Lab, nodes []cluster.Node, rates live.Rates, usage map[cluster.ContainerKey]cluster.Usage, now time.Time) topLab {
	out := topLab{Lab: lab.Name, Time: now.UTC(), Nodes: []topNode{}, Links: []topLink{}}
	containers := map[string][]string{}
	for _, n := range nodes {
		containers[n.Name] = n.Containers
	}
	for _, n := range lab.Nodes {
		row := topNode{Name: n.Name, State: string(n.State), Worker: n.Worker, Restarts: n.Restarts}
		for _, k := range containers[n.Name] {
			if u, ok := usage[cluster.ContainerKey{Pod: n.PodName, Container: k}]; ok {
				if row.CPU == nil {
					row.CPU, row.Memory = new(float64), new(uint64)
				}
				*row.CPU += u.CPU
				*row.Memory += u.Memory
			}
		}
		out.Nodes = append(out.Nodes, row)
	}
	for _, k := range lab.Links {
		row := topLink{A: k.A.Node + ":" + k.A.Interface, B: k.Kind, State: string(k.State), Loss: k.Loss, Drops: k.Drops, RTT: k.RTT, Datapath: k.Datapath}
		if k.B.Node != "" {
			row.B = k.B.Node + ":" + k.B.Interface
		}
		if rate, ok := rates[live.KeyOf(k)]; ok {
			row.RateA, row.RateB = &rate[0], &rate[1]
		}
		out.Links = append(out.Links, row)
	}
	return out
}

// sort puts the greatest first; what the order does not tell apart stays in the order of names.
func (m *topLab) sort(by string) {
	nodeKey := map[string]func(topNode) float64{
		"cpu":      func(n topNode) float64 { return value(n.CPU) },
		"memory":   func(n topNode) float64 { return float64(value(n.Memory)) },
		"restarts": func(n topNode) float64 { return float64(n.Restarts) },
	}[by]
	linkKey := map[string]func(topLink) float64{
		"rate":  func(k topLink) float64 { return value(k.RateA) + value(k.RateB) },
		"loss":  func(k topLink) float64 { return k.Loss },
		"drops": func(k topLink) float64 { return float64(k.Drops) },
		"rtt":   func(k topLink) float64 { return k.RTT },
	}[by]
	if nodeKey != nil {
		slices.SortStableFunc(m.Nodes, func(a, b topNode) int { return cmp.Compare(nodeKey(b), nodeKey(a)) })
	}
	if linkKey != nil {
		slices.SortStableFunc(m.Links, func(a, b topLink) int { return cmp.Compare(linkKey(b), linkKey(a)) })
	}
}

func value[T float64 | uint64](p *T) T {
	if p == nil {
		return 0
	}
	return *p
}

func (f *topFlags) print(world IO, m topLab, terminal bool) error {
	m.Nodes, m.Links = slices.Clone(m.Nodes), slices.Clone(m.Links)
	m.sort(f.sort)
	if f.output == "json" {
		return printJSONLine(world.Out, m)
	}
	var b strings.Builder
	if err := printTop(&b, m); err != nil {
		return err
	}
	if !terminal {
		_, err := fmt.Fprintln(world.Out, strings.TrimRight(b.String(), "\n"))
		return err
	}
	// The screen is written over, line by line, so that it does not flicker.
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	lines = slices.Insert(lines, 1, topHelp)
	if file, ok := show.File(world.Out); ok {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil && height > 2 {
			lines = topScreen(lines, width, height)
		}
	}
	_, err := io.WriteString(show.Raw(world.Out), "\x1b[H"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K\x1b[J")
	return err
}

// topScreen keeps what fits on a screen.
func topScreen(lines []string, width, height int) []string {
	if len(lines) > height-1 {
		lines = append(slices.Clone(lines[:height-2]), fmt.Sprintf("... %d more lines", len(lines)-height+2))
	}
	out := make([]string, len(lines))
	for i, line := range lines {
		if r := []rune(line); len(r) > width {
			line = string(r[:width])
		}
		out[i] = line
	}
	return out
}

func printTop(w io.Writer, m topLab) error {
	fmt.Fprintf(w, "lab %s, %s\n", show.Cell(m.Lab), m.Time.Local().Format("15:04:05"))
	if m.Unknown != "" {
		fmt.Fprintln(w, m.Unknown)
	}
	fmt.Fprintln(w)
	t := show.NewTable(printers.GetNewTabWriter(w))
	t.Row("NODE", "STATE", "CPU", "MEMORY", "RESTARTS", "WORKER")
	for _, n := range m.Nodes {
		cpu, memory := "-", "-"
		if n.CPU != nil {
			cpu, memory = strconv.Itoa(int(*n.CPU+.5))+"m", size(*n.Memory)
		}
		t.Row(n.Name, n.State, cpu, memory, strconv.Itoa(n.Restarts), dash(n.Worker))
	}
	if err := t.Flush(); err != nil || len(m.Links) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t = show.NewTable(printers.GetNewTabWriter(w))
	t.Row("LINK", "", "STATE", "SENT", "RECEIVED", "LOSS", "DROPS", "RTT", "DATAPATH")
	for _, k := range m.Links {
		t.Row(k.A, k.B, k.State, bits(k.RateA), bits(k.RateB), unit(float64(int(k.Loss*10+.5))/10, "%"), strconv.FormatUint(k.Drops, 10), rtt(k.RTT), dash(k.Datapath))
	}
	return t.Flush()
}

// bits formats a rate.
func bits(rate *float64) string {
	if rate == nil {
		return "-"
	}
	v := *rate
	for _, unit := range []string{"bit/s", "kbit/s", "Mbit/s"} {
		if v < 1000 {
			return strconv.FormatFloat(v, 'f', decimals(v), 64) + unit
		}
		v /= 1000
	}
	return strconv.FormatFloat(v, 'f', decimals(v), 64) + "Gbit/s"
}

func decimals(v float64) int {
	if v > 0 && v < 10 {
		return 1
	}
	return 0
}
