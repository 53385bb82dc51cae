//go:build !nocluster

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

type eventsFlags struct {
	labRef
	all      bool
	initial  bool
	stats    bool
	interval time.Duration
	output   string
}

func newEvents(world IO) *cobra.Command {
	f := &eventsFlags{}
	cmd := &cobra.Command{
		Use:   "events [LAB|TOPO]",
		Short: "Print changes of nodes and interfaces as they happen",
		Long: `Events prints a line for each change of a node's container (create, start, die, destroy,
health_status) and of an interface (create, update, delete), until you press Ctrl-C. With
-o json, the lines have containerlab's keys. Events does not poll: it watches the Pods, and
each node's sidecar streams the changes of its interfaces.`,
		Example: `  c9s events
  c9s events mylab --initial-state -o json
  c9s events --all --interface-stats --interface-stats-interval 5s`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labRef.add(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&f.all, "all", "a", false, "events of all labs, or of those in the namespace of -n")
	fs.BoolVar(&f.initial, "initial-state", false, "first print the existing containers and interfaces")
	fs.BoolVar(&f.stats, "interface-stats", false, "also print the counters and rates of interfaces")
	fs.DurationVar(&f.interval, "interface-stats-interval", time.Second, "time between two prints of the counters, at least 100ms")
	fs.StringVarP(&f.output, "output", "o", "plain", "plain or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"plain", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// leastInterval is the shortest time between two prints of counters.
const leastInterval = 100 * time.Millisecond

func (f *eventsFlags) run(ctx context.Context, world IO, args []string) error {
	print, err := eventPrinter(f.output)
	switch {
	case err != nil:
		return err
	case f.all && (len(args) > 0 || f.topo != ""):
		return errors.New("--all excludes a lab: omit one of the two")
	case f.interval < leastInterval:
		return fmt.Errorf("--interface-stats-interval %s: use at least %s", f.interval, leastInterval)
	}
	o := cluster.EventOptions{Namespace: f.namespace, Initial: f.initial}
	if f.stats {
		o.Stats = f.interval
	}
	var client *cluster.Client
	if f.all {
		client, err = f.connect(ctx, world)
	} else {
		client, o.Lab, err = f.find(ctx, world, args)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lost error
	err = client.Events(ctx, o, func(e cluster.Event) {
		if err := print(world.Out, lineOf(e)); err != nil && lost == nil {
			lost = err // nobody reads any more
			cancel()
		}
	})
	switch {
	case lost != nil:
		return fail(lost)
	case err != nil:
		return fail(err)
	}
	return exitCode(exitInterrupted)
}

// eventLine is a line of events, with containerlab's keys.
type eventLine struct {
	Timestamp   time.Time         `json:"timestamp"`
	Type        string            `json:"type"`
	Action      string            `json:"action"`
	ActorID     string            `json:"actor_id"`
	ActorName   string            `json:"actor_name"`
	ActorFullID string            `json:"actor_full_id"`
	Attributes  map[string]string `json:"attributes,omitempty"`
}

// eventPrinter returns what prints a line.
func eventPrinter(output string) (func(io.Writer, eventLine) error, error) {
	switch output {
	case "", "plain":
		return printEvent, nil
	case "json":
		return func(w io.Writer, l eventLine) error {
			enc := json.NewEncoder(w)
			enc.SetEscapeHTML(false)
			return enc.Encode(l)
		}, nil
	}
	return nil, fmt.Errorf("--output %q: use plain or json", output)
}

func printEvent(w io.Writer, l eventLine) error {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(l.Attributes)) {
		parts = append(parts, show.Cell(k)+"="+show.Cell(l.Attributes[k]))
	}
	_, err := fmt.Fprintf(w, "%s %s %s %s (%s)\n", l.Timestamp.Format(time.RFC3339Nano), l.Type, show.Cell(l.Action), l.ActorID, strings.Join(parts, ", "))
	return err
}

// lineOf writes an event in containerlab's words. All values are text.
func lineOf(e cluster.Event) eventLine {
	c := &e.Container
	l := eventLine{
		Timestamp: e.Time.UTC(), Type: "container", Action: e.Action, ActorID: shortID(c.ID), ActorName: c.LongName, ActorFullID: c.ID,
		Attributes: map[string]string{"lab": c.Lab.Name, "containerlab": c.Lab.Name, "namespace": c.Lab.Namespace, "name": c.LongName, "id": c.ID},
	}
	if e.Interface != nil {
		l.Type = "interface"
		maps.Copy(l.Attributes, interfaceAttributes(e))
		for key, value := range containerLabels(c) {
			if strings.HasPrefix(key, "clab-node-") {
				l.Attributes[key] = value
			}
		}
		return l
	}
	maps.Copy(l.Attributes, containerLabels(c))
	l.Attributes["image"], l.Attributes["state"] = c.Image, c.Word()
	if e.Initial {
		l.Attributes["origin"], l.Attributes["status"] = "snapshot", containerStatus(c)
	}
	if e.Action == "die" {
		l.Attributes["exitCode"] = strconv.Itoa(int(e.ExitCode))
	}
	for key, a := range map[string]string{"mgmt_ipv4": address(c.Directory.IPv4), "mgmt_ipv6": address(c.Directory.IPv6)} {
		if a != "N/A" {
			l.Attributes[key] = a
		}
	}
	return l
}

// interfaceAttributes describe an interface and, for an event with counters, its rates.
func interfaceAttributes(e cluster.Event) map[string]string {
	in := e.Interface
	out := map[string]string{
		"ifname": in.Name, "index": strconv.Itoa(in.Index), "mtu": strconv.Itoa(in.MTU), "type": in.Type, "state": in.State, "mac": in.MAC, "alias": in.Alias,
		"origin": "netlink",
	}
	if d := e.Declared; d != nil {
		if out["alias"] == "" {
			out["alias"] = d.Alias
		}
		out["peer"] = peerOf(d)
		maps.Copy(out, netemAttributes(in.Impairment))
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	if e.Action != contract.ActionStats {
		return out
	}
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	rate := func(now, before uint64, unit float64) string {
		if now < before { // it was recreated
			before = now
		}
		return strconv.FormatFloat(float64(now-before)*unit/e.Interval.Seconds(), 'f', 2, 64)
	}
	now, before := in.Counters, e.Before
	maps.Copy(out, map[string]string{
		"rx_bytes": number(now.RxBytes), "tx_bytes": number(now.TxBytes), "rx_packets": number(now.RxPackets), "tx_packets": number(now.TxPackets),
		"rx_bps": rate(now.RxBytes, before.RxBytes, 8), "tx_bps": rate(now.TxBytes, before.TxBytes, 8),
		"rx_pps": rate(now.RxPackets, before.RxPackets, 1), "tx_pps": rate(now.TxPackets, before.TxPackets, 1),
		"interval_seconds": strconv.FormatFloat(e.Interval.Seconds(), 'f', 3, 64),
	})
	return out
}

// netemAttributes are what is done to the frames that an interface sends.
func netemAttributes(i *contract.Impairment) map[string]string {
	out := map[string]string{}
	if i == nil {
		return out
	}
	if i.Down {
		out["netem_down"] = "true"
	}
	for key, value := range map[string]string{
		"netem_delay": netemTime(i.DelayMS), "netem_jitter": netemTime(i.JitterMS), "netem_loss": netemNumber(i.Loss),
		"netem_rate": netemNumber(float64(i.RateKbit)), "netem_corruption": netemNumber(i.Corruption),
		"netem_duplication": netemNumber(i.Duplication), "netem_reordering": netemNumber(i.Reordering),
	} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}

// netemTime is a time in milliseconds as Go writes it, "" for none.
func netemTime(ms float64) string {
	if ms == 0 {
		return ""
	}
	return time.Duration(ms * float64(time.Millisecond)).String()
}

func netemNumber(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// topologyPath is the topology's file as this machine has it, or as the lab names it.
func topologyPath(source string) string {
	if file, err := filepath.Abs(source); err == nil && source != "" && exists(file) {
		return file
	}
	return source
}
