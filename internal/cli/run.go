//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/scenario"
)

type runFlags struct {
	nodeRef
	kindsDir string
	seed     int64
	list     bool
	output   string
	save     bool
	yes      bool
}

func newRun(world IO) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Break a running lab as a scenario says, and report what happened",
		Long: `Run carries out a scenario: a file of events, each at its time. Links go down, flap or lose
frames, nodes stop, workers are drained, commands run in nodes. Meanwhile probes measure how
long addresses are not reached. In the end, or if it is interrupted, run takes back what it did;
changes of links end by themselves if it is killed. It asks before a node stops whose running
configuration is not saved; --save saves it first.

The exit code is 0 if every event could be carried out and every probe stayed within its limit,
otherwise 1.`,
		Example: `  c9s run failover.yaml
  c9s run failover.yaml --list
  c9s run failover.yaml --seed 7 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.output != "" && f.output != "json" {
				return fmt.Errorf("--output %q: use json", f.output)
			}
			if err := notEmpty(args); err != nil {
				return err
			}
			return f.run(cmd.Context(), world, args[0])
		},
	}
	f.add(cmd, world, "t")
	cmd.ValidArgsFunction = completeTopo
	fs := cmd.Flags()
	fs.StringVar(&f.kindsDir, "kinds", "", "folder with your own kinds")
	fs.Int64Var(&f.seed, "seed", 0, "seed of the random choices (default: the file's, or a new one)")
	fs.BoolVar(&f.list, "list", false, "list the events and carry out none")
	fs.StringVarP(&f.output, "output", "o", "", "json prints the report as JSON")
	fs.BoolVar(&f.save, "save", false, "save the running configurations of nodes that stop first, as 'c9s save' does")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask about configurations that are not saved")
	_ = cmd.MarkFlagDirname("kinds")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// loadScenario reads a scenario.
func loadScenario(world IO, file string) (*scenario.File, error) {
	data, err := readInput(file, "")
	if err != nil {
		return nil, fail(err)
	}
	out, diags := scenario.Load(file, data)
	report(world, diags)
	if out == nil {
		return nil, errFailed
	}
	return out, nil
}

func (f *runFlags) run(ctx context.Context, world IO, file string) error {
	read, err := loadScenario(world, file)
	if err != nil {
		return err
	}
	catalogue, err := ownKinds(world, f.kindsDir)
	if err != nil {
		return err
	}
	l, err := f.links(ctx, world)
	if err != nil {
		return err
	}
	lab, err := (&tested{client: l.client, found: l.found, nodes: l.nodes, kinds: catalogue}).lab(ctx, true)
	if err != nil {
		return fail(err)
	}
	of := &scenario.Lab{Lab: lab}
	for _, n := range l.nodes {
		if n.Stopped {
			of.Stopped = append(of.Stopped, n.Name)
		}
	}
	if slices.ContainsFunc(read.Events, func(e scenario.Event) bool { return len(e.Worker) > 0 }) {
		if of.Workers, of.Cordoned, err = l.client.Workers(ctx); err != nil {
			return fail(err)
		}
	}
	plan, diags := scenario.Make(read, of, cmp.Or(f.seed, read.Seed, 1+rand.Int64N(1_000_000_000)))
	report(world, diags)
	if plan == nil {
		return errFailed
	}
	if f.list {
		return fail(f.printPlan(world, plan))
	}
	keep := keepWork{save: f.save, yes: f.yes, at: localFiles(f.topo, f.lab), table: world.Err}
	if err := keep.before(ctx, world, l.client, l.found, losing(l.nodes, plan), catalogue, "Run"); err != nil {
		return err
	}
	fmt.Fprintf(world.Err, "lab %s: %d events in %s, seed %d\n", show.Cell(l.found.Name), len(plan.Steps), plan.Length.Round(time.Millisecond), plan.Seed)
	result, err := plan.Run(ctx, &scenarioActor{l}, func(r scenario.Record) {
		fmt.Fprintf(world.Err, "%7.1fs  %s: %s\n", r.At, show.Cell(r.Event), show.Cell(strings.TrimSpace(r.State+" "+r.Detail)))
	})
	if result == nil {
		return fail(err)
	}
	if f.output == "json" {
		err = errors.Join(err, printJSON(world.Out, result))
	} else {
		err = errors.Join(err, printReport(world, result))
	}
	switch {
	case ctx.Err() != nil:
		return exitCode(exitInterrupted)
	case err != nil:
		return fail(err)
	case result.Failed > 0:
		return errFailed
	}
	return nil
}

// losing returns the nodes whose Pods a scenario deletes.
func losing(nodes []cluster.Node, p *scenario.Plan) []cluster.Node {
	pods := map[string]bool{}
	drained := false
	for _, s := range p.Steps {
		drained = drained || s.Event.Do == scenario.DoDrain
		for _, n := range nodes {
			if s.Field == "node" && s.Event.Do != scenario.DoStart && slices.Contains(s.Target, n.Name) {
				pods[n.Deployment] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool { return n.Stopped || !drained && !pods[n.Deployment] })
}

func (f *runFlags) printPlan(world IO, p *scenario.Plan) error {
	if f.output == "json" {
		type step struct {
			At     float64  `json:"atSeconds"`
			Event  string   `json:"event"`
			Target []string `json:"targets"`
			Source string   `json:"source"`
		}
		list := []step{}
		for _, s := range p.Steps {
			list = append(list, step{s.At.Seconds(), s.Text, s.Target, s.Source})
		}
		return printJSON(world.Out, struct {
			Seed    int64   `json:"seed"`
			Seconds float64 `json:"seconds"`
			Events  []step  `json:"events"`
		}{p.Seed, p.Length.Seconds(), list})
	}
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	t.Row("TIME", "EVENT", "SOURCE")
	for _, s := range p.Steps {
		t.Row(fmt.Sprintf("%.1fs", s.At.Seconds()), s.Text, s.Source)
	}
	return t.Flush()
}

// printReport prints what happened in the order of time.
func printReport(world IO, r *scenario.Report) error {
	type row struct {
		at                    float64
		event, result, detail string
	}
	var rows []row
	for _, e := range r.Events {
		rows = append(rows, row{e.At, e.Event, e.State, e.Detail})
	}
	for _, p := range r.Probes {
		for _, o := range p.Outages {
			detail := ""
			if o.After != "" {
				detail = "after " + o.After
			}
			result := scenario.Passed
			switch {
			case p.Within == 0:
				result = "-"
			case o.Seconds > p.Within:
				result = scenario.Failed
			}
			rows = append(rows, row{o.At, fmt.Sprintf("%s unreachable for %.2fs", p.Name, o.Seconds), result, detail})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	t.Row("TIME", "EVENT", "RESULT", "DETAIL")
	for _, w := range rows {
		t.Row(fmt.Sprintf("%.1fs", w.at), w.event, w.result, w.detail)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range r.Probes {
		within := ""
		if p.Within > 0 {
			within = fmt.Sprintf(" (allowed are %s)", time.Duration(p.Within*float64(time.Second)))
		}
		line := fmt.Sprintf("%s: %d of %d answered, unreachable for at most %.2fs%s: %s", p.Name, p.Received, p.Sent, p.Longest, within, p.State)
		if p.More > 0 {
			line += fmt.Sprintf("; the table has the %d longest outages of %d", len(p.Outages), len(p.Outages)+p.More)
		}
		if p.Detail != "" {
			line += ": " + p.Detail
		}
		fmt.Fprintln(world.Out, show.Cell(line))
	}
	fmt.Fprintf(world.Err, "lab %s: %d events, %d failed (%.1f s, seed %d)\n", show.Cell(r.Lab), len(r.Events), r.Failed, r.Seconds, r.Seed)
	return nil
}

// scenarioActor does to a lab what a scenario says.
type scenarioActor struct{ *links }

// Link implements scenario.Actor.
func (a *scenarioActor) Link(ctx context.Context, end string, both bool, change scenario.Change) (func(context.Context) error, error) {
	return a.disturb(ctx, end, both, func(l *links, in contract.Interface, now contract.Quality) contract.Quality {
		return change(l.declared[in.Node+":"+in.Name], now)
	})
}

// nodeTime is how long nodes may take to stop or to become ready.
const nodeTime = 5 * time.Minute

// Node implements scenario.Actor.
func (a *scenarioActor) Node(ctx context.Context, names []string, do string) error {
	chosen, err := cluster.Select(a.nodes, names)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	pods := deployments(chosen)
	for _, pod := range pods {
		switch do {
		case scenario.DoStop:
			err = a.client.Scale(ctx, a.found.Namespace, pod, 0)
		case scenario.DoStart:
			err = a.client.Scale(ctx, a.found.Namespace, pod, 1)
		default:
			err = a.client.RestartRunning(ctx, a.found.Namespace, pod)
		}
		if err != nil {
			return err
		}
	}
	if do != scenario.DoStop {
		return a.client.WaitPods(ctx, a.found.Namespace, a.found.Name, pods)
	}
	for _, pod := range pods {
		if err := a.client.WaitNoPod(ctx, a.found.Namespace, pod); err != nil {
			return err
		}
	}
	return nil
}

// Worker implements scenario.Actor.
func (a *scenarioActor) Worker(ctx context.Context, worker, do string) error {
	if err := a.client.Cordon(ctx, worker, do != scenario.DoUncordon); err != nil || do != scenario.DoDrain {
		return err
	}
	return a.client.Drain(ctx, a.found, worker)
}
