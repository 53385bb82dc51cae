//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/fetch"
	"github.com/c9s-lab/c9s/pkg/labtest"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// Exit codes of test, which are those of netlab validate.
const (
	exitNoTest   = 2
	exitWarnings = 3
)

type testFlags struct {
	nodeRef
	kindsDir string
	labels   []string
	timeout  time.Duration
	list     bool
	output   string
	junit    string
}

func newTest(world IO) *cobra.Command {
	f := &testFlags{}
	cmd := &cobra.Command{
		Use:   "test [FILE]",
		Short: "Check a running lab: links, reachability, neighbours, output of commands",
		Long: `Test runs the checks of a file and retries each of them until it passes or times out. The
default file for NAME.clab.yml is NAME.test.yaml next to it. Without a file, test checks what
any lab should have: every link passes packets of its MTU both ways, the management network
works over IPv4 and IPv6, all names resolve, and LLDP neighbours see each other if both
devices speak LLDP. The sidecars send the packets, so the images need no tools.

The exit code is 0 if everything passed, 1 if a check failed, 2 if there was nothing to check,
and 3 if there were only warnings.`,
		Example: `  c9s test
  c9s test core.test.yaml --label bgp
  c9s test -o json --junit report.xml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.output != "" && f.output != "json" {
				return fmt.Errorf("--output %q: use json", f.output)
			}
			if f.timeout < 0 {
				return fmt.Errorf("--timeout %s: use a duration", f.timeout)
			}
			return f.run(cmd.Context(), world, args)
		},
	}
	f.add(cmd, world, "t")
	cmd.ValidArgsFunction = completeTopo
	fs := cmd.Flags()
	fs.StringVar(&f.kindsDir, "kinds", "", "folder with your own kinds")
	fs.StringSliceVar(&f.labels, "label", nil, "run only checks with one of these labels")
	fs.DurationVar(&f.timeout, "timeout", 0, "retry each check for this long (default: as the file says, or 1m)")
	fs.BoolVar(&f.list, "list", false, "list the checks and run none")
	fs.StringVarP(&f.output, "output", "o", "", "json prints the results as JSON")
	fs.StringVar(&f.junit, "junit", "", "also write the results to this file, in the format of JUnit")
	_ = cmd.MarkFlagDirname("kinds")
	_ = cmd.MarkFlagFilename("junit", "xml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *testFlags) run(ctx context.Context, world IO, args []string) error {
	file := ""
	if len(args) > 0 {
		if err := notEmpty(args); err != nil {
			return err
		}
		file = args[0]
	} else {
		file = testFile(f.topo, f.lab)
	}
	tests, err := loadTests(world, file)
	if err != nil {
		return err
	}
	catalogue, err := ownKinds(world, f.kindsDir)
	if err != nil {
		return err
	}
	client, found, nodes, err := f.find(ctx, world)
	if err != nil {
		return err
	}
	return f.test(ctx, world, &tested{client: client, found: found, nodes: nodes, kinds: catalogue}, tests)
}

// testFile returns the file of tests next to the topology, "" if there is none.
func testFile(topo, lab string) string {
	if topo == "" && lab == "" && topologyHere() {
		topo = "."
	}
	if info, err := os.Stat(topo); err == nil && info.IsDir() {
		files, _ := filepath.Glob(filepath.Join(topo, "*.clab.y*ml"))
		if len(files) != 1 {
			return ""
		}
		topo = files[0]
	}
	base := strings.TrimSuffix(strings.TrimSuffix(topo, filepath.Ext(topo)), ".clab")
	if base == "" {
		return ""
	}
	if _, err := os.Stat(base + labtest.Suffix); err != nil {
		return ""
	}
	return base + labtest.Suffix
}

// loadTests reads a file of tests; without one, the checks are those of any lab.
func loadTests(world IO, file string) (*labtest.File, error) {
	if file == "" {
		return labtest.Basics(), nil
	}
	data, err := readInput(file, "; without one, c9s test checks what any lab should have")
	if err != nil {
		return nil, fail(err)
	}
	tests, diags := labtest.Load(file, data)
	report(world, diags)
	if tests == nil {
		return nil, errFailed
	}
	return tests, nil
}

// readInput reads a file that the command line names, of at most fetch.MaxSize bytes. missing
// completes the message about one that does not exist.
func readInput(file, missing string) ([]byte, error) {
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s%s", file, missing)
	case err == nil && len(data) > fetch.MaxSize:
		return nil, fmt.Errorf("%s has more than %d bytes", file, fetch.MaxSize)
	}
	return data, err
}

// ownKinds returns the catalogue with the user's own kinds.
func ownKinds(world IO, dir string) (*kinds.Catalogue, error) {
	catalogue := kinds.Builtin()
	if dir == "" {
		return catalogue, nil
	}
	own, diags := kinds.LoadDir(catalogue, dir)
	report(world, diags)
	if own == nil || hasErrors(diags) {
		return nil, errFailed
	}
	return own, nil
}

// tested is a lab under test.
type tested struct {
	client *cluster.Client
	found  cluster.Found
	nodes  []cluster.Node
	kinds  *kinds.Catalogue
}

// test runs the checks and reports them.
func (f *testFlags) test(ctx context.Context, world IO, t *tested, file *labtest.File) error {
	lab, err := t.lab(ctx, len(file.Links)+len(file.Convergence) > 0)
	if err != nil {
		return fail(err)
	}
	tests, diags := labtest.Plan(file, lab, labtest.Choice{Labels: f.labels, Timeout: f.timeout})
	report(world, diags)
	if tests == nil {
		return errFailed
	}
	cases := tests.Cases()
	if f.list {
		for _, name := range cases {
			fmt.Fprintln(world.Out, name)
		}
		return nil
	}
	if len(cases) == 0 {
		fmt.Fprintln(world.Err, "there is nothing to check")
		return f.finish(world, t.found.Name, time.Now(), []labtest.Result{})
	}
	began := time.Now()
	results := tests.Run(ctx, func(r labtest.Result) {
		if r.State != labtest.Passed {
			fmt.Fprintf(world.Err, "%s: %s/%s: %s\n", r.State, r.Group, show.Cell(r.Name), show.Cell(r.Detail))
		}
	})
	if ctx.Err() != nil {
		return exitCode(exitInterrupted)
	}
	return f.finish(world, t.found.Name, began, results)
}

// finish prints the results and returns the exit code.
func (f *testFlags) finish(world IO, lab string, began time.Time, results []labtest.Result) error {
	took := time.Since(began)
	if f.junit != "" {
		var b bytes.Buffer
		err := labtest.JUnit(&b, lab, began, took, results)
		if err == nil {
			err = atomicfile.Write(f.junit, b.Bytes(), 0o644, 0o755)
		}
		if err != nil {
			return fail(err)
		}
	}
	passed, failed, warnings := labtest.Count(results)
	var err error
	if f.output == "json" {
		err = printJSON(world.Out, struct {
			Lab      string           `json:"lab"`
			Passed   int              `json:"passed"`
			Failed   int              `json:"failed"`
			Warnings int              `json:"warnings"`
			Seconds  float64          `json:"seconds"`
			Results  []labtest.Result `json:"results"`
		}{lab, passed, failed, warnings, took.Seconds(), results})
	} else {
		err = testTable(world, results)
		fmt.Fprintf(world.Err, "lab %s: %d passed, %d failed, %d warnings (%.1f s)\n", show.Cell(lab), passed, failed, warnings, took.Seconds())
	}
	switch {
	case err != nil:
		return fail(err)
	case failed > 0:
		return errFailed
	case warnings > 0:
		return exitCode(exitWarnings)
	case passed == 0:
		return exitCode(exitNoTest)
	}
	return nil
}

func testTable(world IO, results []labtest.Result) error {
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	t.Row("CHECK", "CASE", "RESULT", "TIME", "DETAIL")
	for _, r := range results {
		t.Row(r.Group, r.Name, r.State, fmt.Sprintf("%.1fs", r.Seconds), r.Detail)
	}
	return t.Flush()
}

// mostOutput is the most that a command of a check may print, in bytes.
const mostOutput = 16 << 20

// lab describes the lab for its checks. The names that kinds have for interfaces are read only
// if they are needed.
func (t *tested) lab(ctx context.Context, aliases bool) (*labtest.Lab, error) {
	directory, err := t.client.Directory(ctx, t.found)
	if err != nil {
		return nil, err
	}
	setKinds(t.nodes, directory)
	topology, err := t.client.Topology(ctx, t.found)
	if err != nil {
		return nil, err
	}
	l := &labtest.Lab{Name: t.found.Name, Measure: t.measure, Exec: t.exec, Cut: t.cut}
	pods := map[string]string{}
	for _, n := range t.nodes {
		if n.Stopped {
			continue
		}
		kind, _ := t.kinds.Lookup(n.Kind)
		node := labtest.Node{Name: n.Name, Pod: n.Deployment, Container: len(n.Containers) > 0, Kind: kind}
		for _, d := range directory.Nodes {
			if d.Name == n.Name {
				node.IPv4, node.IPv6, node.Names = d.IPv4, d.IPv6, d.Names
			}
		}
		pods[n.Name] = n.Deployment
		l.Nodes = append(l.Nodes, node)
	}
	names, err := t.aliases(ctx, aliases)
	if err != nil {
		return nil, err
	}
	for _, link := range topology {
		if link.B == nil || pods[link.A.Node] == "" || pods[link.B.Node] == "" {
			continue
		}
		end := func(e contract.TopologyEnd) labtest.End {
			return labtest.End{Node: e.Node, Pod: pods[e.Node], Interface: e.Interface, Alias: names[e.Node+":"+e.Interface]}
		}
		l.Links = append(l.Links, labtest.Link{A: end(link.A), B: end(*link.B)})
	}
	return l, nil
}

// aliases returns the kinds' names of interfaces by NODE:INTERFACE.
func (t *tested) aliases(ctx context.Context, wanted bool) (map[string]string, error) {
	if !wanted {
		return nil, nil
	}
	out := map[string]string{}
	for _, pod := range deployments(t.nodes) {
		links, err := t.client.Links(ctx, t.found, pod)
		if err != nil {
			return nil, err
		}
		for _, in := range links.Interfaces {
			out[in.Node+":"+in.Name] = in.Alias
		}
	}
	return out, nil
}

func (t *tested) measure(ctx context.Context, pod string, r contract.MeasureRequest) (contract.Measurement, error) {
	return t.client.Measure(ctx, t.found, pod, r)
}

func (t *tested) node(name string) (cluster.Node, error) {
	i := slices.IndexFunc(t.nodes, func(n cluster.Node) bool { return n.Name == name })
	if i < 0 {
		return cluster.Node{}, fmt.Errorf("there is no node %s", name)
	}
	return t.nodes[i], nil
}

func (t *tested) exec(ctx context.Context, n labtest.Node, argv []string) (labtest.Output, error) {
	node, err := t.node(n.Name)
	if err != nil {
		return labtest.Output{}, err
	}
	out, errOut := &cluster.Buffer{Limit: mostOutput}, &cluster.Buffer{Limit: mostOutput}
	code, err := execIn(ctx, t.client, t.found, node, argv, cluster.Streams{Out: out, Err: errOut})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s does not end in time", argv[0])
	}
	return labtest.Output{Code: code, Out: out.String(), Err: errOut.String()}, err
}

// cut makes both ends of a link lose every frame, and returns what restores them.
func (t *tested) cut(ctx context.Context, name, in string) (func(context.Context) error, error) {
	return (&links{client: t.client, found: t.found, nodes: t.nodes}).disturb(ctx, name+":"+in, true, func(_ *links, _ contract.Interface, q contract.Quality) contract.Quality {
		return q.Change(time.Now(), func(i *contract.Impairment) { i.Loss = 100 })
	})
}
