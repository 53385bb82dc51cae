//go:build !nocluster

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/doctor"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/render"
)

type doctorFlags struct {
	labFlags
	targetFlags
	probe   bool
	timeout time.Duration
	output  string
}

func newDoctor(world IO) *cobra.Command {
	f := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor [TOPO]",
		Short: "Check whether the cluster can run a lab",
		Long: `Doctor checks the cluster of the current context. For each thing that a lab needs, it
reports what it found and what to do if something is missing. With a topology, only what
that lab needs counts as a problem. It changes nothing.

With --probe it runs a privileged Pod on each worker for a few seconds to test the
features of the kernel, then deletes it. If the namespace does not exist, doctor creates
it and deletes it afterwards.

The exit code is 1 if there is a problem. Warnings do not change it.`,
		Example: `  c9s doctor
  c9s doctor topo.clab.yml
  c9s doctor topo.clab.yml --probe -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTopo,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), world, args)
		},
	}
	f.labFlags.add(cmd)
	f.targetFlags.add(cmd)
	fs := cmd.Flags()
	fs.Lookup("namespace").Usage = "namespace (default: the lab's name, or the context's)"
	fs.BoolVar(&f.probe, "probe", false, "run a short-lived privileged Pod on each worker to test its kernel")
	fs.DurationVar(&f.timeout, "timeout", 90*time.Second, "time limit of a probe, including the image pull")
	fs.StringVarP(&f.output, "output", "o", "", "output format: json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *doctorFlags) check() error {
	if f.output != "" && f.output != "json" {
		return fmt.Errorf("--output %q: use json", f.output)
	}
	if f.timeout <= 0 {
		return fmt.Errorf("--timeout %s: use a duration such as 90s", f.timeout)
	}
	return nil
}

func (f *doctorFlags) run(ctx context.Context, world IO, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	needs, namespace, err := f.needs(ctx, world, args)
	if err != nil {
		return err
	}
	client, err := f.connect(ctx, world)
	if err != nil {
		return err
	}
	if namespace == "" {
		namespace = client.Namespace
	}
	facts, err := doctor.Collector{Client: client.Typed, Namespace: namespace, Fallback: client.Namespace}.Collect(ctx, needs)
	if err != nil {
		return fail(fmt.Errorf("asking the API server: %w", err))
	}
	if f.probe {
		if err := f.probeCluster(ctx, world, client, &facts, needs); err != nil {
			return fail(err)
		}
	}
	report := doctor.Report{Version: doctor.Version, Context: client.Context, Namespace: namespace, Lab: needs.Lab, Checks: doctor.Examine(facts, needs)}
	if f.output == "json" {
		err = printJSON(world.Out, report)
	} else {
		err = printDoctor(world, report, f.probe)
	}
	if err != nil {
		return fail(err)
	}
	if report.Problems() > 0 {
		return errFailed
	}
	return nil
}

// needs are those of the topology, if one is named.
func (f *doctorFlags) needs(ctx context.Context, world IO, args []string) (doctor.Needs, string, error) {
	ref, err := f.ref(args)
	if err != nil || ref == "" {
		return doctor.Any(), f.namespace, err
	}
	none := doctor.Needs{}
	rules, err := f.imageRules()
	if err != nil {
		return none, "", err
	}
	c, err := f.compile(ctx, world, ref, pipeline.Input{Namespace: f.namespace})
	if err != nil {
		return none, "", err
	}
	defer c.Close()
	out, diags, err := f.renderLab(ctx, world, c, rules, render.Options{WireKey: pipeline.NewWireKey()}, nil)
	if err != nil {
		return none, "", err
	}
	if out == nil || hasErrors(diags) {
		report(world, diags)
		fmt.Fprintf(world.Err, "%s; correct the topology before checking the cluster\n", summary(diags))
		return none, "", errFailed
	}
	return doctor.Of(out), out.Namespace, nil
}

func (f *doctorFlags) probeCluster(ctx context.Context, world IO, client *cluster.Client, facts *doctor.Facts, needs doctor.Needs) error {
	rules, err := f.imageRules()
	if err != nil {
		return err
	}
	fmt.Fprintln(world.Err, "probing the workers ...")
	facts.Probes, facts.Policies, err = doctor.Prober{
		Client: client.Typed, Namespace: facts.NamespaceName, Image: render.MapImage(rules, cmp.Or(f.ownImage(world, nil), defaultImage())), Timeout: f.timeout,
	}.Probe(ctx, *facts, needs)
	return err
}

// resultTones are the colours of results, on a terminal.
var resultTones = map[doctor.Result]string{doctor.Warning: yellow, doctor.Problem: red}

// printDoctor prints a table, with each remedy below its check. On a terminal
// long cells continue in the next line, in a pipe a check is one line and its remedy
// another.
func printDoctor(world IO, r doctor.Report, probed bool) error {
	width, color := terminalWidth(world)
	column := len("CHECK")
	for _, c := range r.Checks {
		column = max(column, len([]rune(c.Name)))
	}
	const results = 9 // "problem", two spaces
	margin := results + column + 2
	var b strings.Builder
	row := func(result, tone, check, found string) {
		lines := wrap(show.Cell(found), width-margin)
		end := ""
		if tone != "" {
			end = reset
		}
		fmt.Fprintf(&b, "%s%-*s%s%-*s  %s\n", tone, results, result, end, column, show.Cell(check), lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(&b, "%*s%s\n", margin, "", line)
		}
	}
	row("RESULT", "", "CHECK", "FOUND")
	for _, c := range r.Checks {
		tone := ""
		if color {
			tone = resultTones[c.Result]
		}
		row(string(c.Result), tone, c.Name, oneText(c.Found))
		if c.Remedy != "" {
			row("", "", "", "→ "+c.Remedy)
		}
	}
	b.WriteString("\n" + show.Cell(lastLine(r, probed)) + "\n")
	_, err := io.WriteString(show.Raw(world.Out), b.String())
	return err
}

// lastLine is the last line.
func lastLine(r doctor.Report, probed bool) string {
	what := "labs"
	if r.Lab != "" {
		what = "lab " + r.Lab
	}
	line := what + " can run here"
	if r.Problems() > 0 {
		line = what + " cannot run here: " + diag.Count(r.Problems(), "problem")
	}
	if r.Warnings() > 0 {
		line += ", " + diag.Count(r.Warnings(), "warning")
	}
	if !probed {
		line += " (--probe also tests the workers' kernels)"
	}
	return line
}

// oneText makes one line of several.
func oneText(s string) string { return strings.Join(strings.Fields(s), " ") }

// wrap breaks text into lines of a width; one below the least is none.
func wrap(s string, width int) []string {
	const least = 30
	if width < least {
		return []string{s}
	}
	return strings.Split(text.WrapSoft(s, width), "\n")
}

// terminalWidth is that of standard output, 0 where it is no terminal.
func terminalWidth(world IO) (width int, color bool) {
	f, ok := show.File(world.Out)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, world.Color
	}
	return width, world.Color
}
