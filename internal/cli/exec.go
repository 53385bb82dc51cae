//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
)

type execFlags struct {
	nodeRef
	all    bool
	label  string
	stdin  bool
	tty    bool
	output string
	quiet  bool // no warning about input that the command does not get
}

func newExec(world IO) *cobra.Command {
	f := &execFlags{}
	cmd := &cobra.Command{
		Use:   "exec NODE -- COMMAND...",
		Short: "Run a command in a node",
		Long: `Exec runs a command in a node's container: one node by name (NODE/SLOT for a card
of a chassis), or several by --all or --label. Its exit code is the command's; with
several nodes it is 1 if any failed. A bridge has no container: of it the command
bridge shows fdb, link, vlan or mdb.`,
		Example: `  c9s exec R1 -- vtysh -c 'show ip route'
  c9s exec br1 -- bridge fdb
  c9s exec --all -- ip -br link
  c9s exec --label role=leaf -o json -- uptime`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			several := f.all || f.label != ""
			switch {
			case dash < 0 && len(args) > 1:
				return errors.New("missing -- before the command; usage: c9s exec NODE -- COMMAND [ARG...]")
			case dash < 0, len(args) == dash:
				return errors.New("missing command; usage: c9s exec NODE -- COMMAND [ARG...]")
			case several && dash != 0, !several && dash != 1:
				return errors.New("name one node before --, or use --all or --label")
			case f.output != "" && f.output != "json":
				return fmt.Errorf("--output %q: use json", f.output)
			case several && (f.stdin || f.tty):
				return errors.New("-i and -t are for one node")
			}
			return f.run(cmd.Context(), world, args[:dash], args[dash:])
		},
	}
	f.add(cmd, world, "") // -t is a terminal here, as for docker and kubectl
	fs := cmd.Flags()
	fs.BoolVar(&f.all, "all", false, "run in every node that has a container")
	fs.StringVar(&f.label, "label", "", "run in the nodes with this label of the topology: KEY or KEY=VALUE")
	fs.BoolVarP(&f.stdin, "stdin", "i", false, "pass standard input to the command")
	fs.BoolVarP(&f.tty, "tty", "t", false, "allocate a terminal")
	fs.StringVarP(&f.output, "output", "o", "", "json prints output, errors and exit code of each node")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// execResult is one node's part of -o json.
type execResult struct {
	Node     string `json:"node"`
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	Error    string `json:"error,omitempty"`
}

func (f *execFlags) run(ctx context.Context, world IO, names, argv []string) error {
	client, found, nodes, err := f.find(ctx, world)
	if err != nil {
		return err
	}
	switch {
	case f.label != "":
		if nodes = matchLabel(nodes, f.label); len(nodes) == 0 {
			return fail(fmt.Errorf("no node of lab %s has the label %s", found.Name, f.label))
		}
	case !f.all:
		if nodes, err = cluster.Select(nodes, names); err != nil {
			return fail(err)
		}
		if f.output == "" {
			return f.one(ctx, world, client, found, nodes[0], argv)
		}
	}
	return f.many(ctx, world, client, found, nodes, argv)
}

// one runs the command with the caller's own streams.
func (f *execFlags) one(ctx context.Context, world IO, client *cluster.Client, found cluster.Found, n cluster.Node, argv []string) error {
	s := cluster.Streams{Out: show.Stream(world.Out), Err: show.Stream(world.Err), TTY: f.tty}
	if f.tty { // the program has the terminal to itself
		s.Out, s.Err = show.Raw(world.Out), show.Raw(world.Err)
	}
	if f.stdin {
		s.In = world.In
	} else if !f.quiet && isPipe(world.In) {
		fmt.Fprintln(world.Err, "warning: the command does not get standard input; use -i")
	}
	code, err := execIn(ctx, client, found, n, argv, s)
	var failed *cluster.ProgramError
	if errors.As(err, &failed) {
		fmt.Fprintf(world.Err, "Error: %v\n", err)
		return exitCode(failed.Code)
	}
	if err != nil {
		return fail(err)
	}
	if code != 0 {
		return exitCode(code)
	}
	return nil
}

// isPipe reports whether a reader is a pipe: somebody means a command to read it.
func isPipe(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

func execIn(ctx context.Context, client *cluster.Client, found cluster.Found, n cluster.Node, argv []string, s cluster.Streams) (int, error) {
	container := contract.WireContainer
	switch {
	case len(n.Containers) > 0:
		container = n.Containers[0]
	case argv[0] == "bridge": // it is in the sidecar's network namespace
		argv = append([]string{contract.SidecarProgram, "bridge", n.Name}, argv[1:]...)
	default:
		return 0, noContainer(n)
	}
	if err := notStopped(n); err != nil {
		return 0, err
	}
	pod, err := client.Pod(ctx, found.Namespace, n.Deployment)
	if err != nil {
		return 0, fmt.Errorf("node %s: %w", n.Name, err)
	}
	code, err := client.Exec(ctx, found.Namespace, pod.Name, container, argv, s)
	if err != nil {
		return 0, fmt.Errorf("node %s: %w", n.Name, err)
	}
	return code, nil
}

// execAtOnce is how many nodes run a command at the same time, and nodesAtOnce how many are saved,
// compared or reset: these mostly wait for devices.
const (
	execAtOnce  = 16
	nodesAtOnce = 64
)

func (f *execFlags) many(ctx context.Context, world IO, client *cluster.Client, found cluster.Found, nodes []cluster.Node, argv []string) error {
	var with []cluster.Node
	for _, n := range nodes {
		if len(n.Containers) > 0 {
			with = append(with, n)
		}
	}
	results := make([]execResult, len(with))
	bounded.Each(len(with), execAtOnce, func(i int) {
		var out, errOut cluster.Buffer
		code, err := execIn(ctx, client, found, with[i], argv, cluster.Streams{Out: &out, Err: &errOut})
		results[i] = execResult{Node: with[i].Name, ExitCode: code, Stdout: out.String(), Stderr: errOut.String()}
		if err != nil {
			results[i].ExitCode, results[i].Error = 1, err.Error()
		}
		var failed *cluster.ProgramError
		if errors.As(err, &failed) {
			results[i].ExitCode = failed.Code
		}
	})
	failed := false
	for _, r := range results {
		failed = failed || r.ExitCode != 0
		if f.output == "" {
			printResult(world, r)
		}
	}
	if f.output == "json" {
		if err := printJSON(world.Out, results); err != nil {
			return fail(err)
		}
	}
	switch {
	case failed && len(results) == 1 && results[0].Error == "":
		return exitCode(results[0].ExitCode) // as without -o
	case failed:
		return errFailed
	}
	return nil
}

func printResult(world IO, r execResult) {
	fmt.Fprintf(world.Out, "== %s (exit code %d)\n", show.Cell(r.Node), r.ExitCode)
	for _, part := range []struct {
		w    io.Writer
		text string
	}{{show.Stream(world.Out), r.Stdout}, {show.Stream(world.Err), r.Stderr}, {world.Err, r.Error}} {
		if part.text != "" {
			fmt.Fprintln(part.w, strings.TrimRight(part.text, "\n"))
		}
	}
}

func newShell(world IO) *cobra.Command {
	f := &execFlags{stdin: true}
	cmd := &cobra.Command{
		Use:     "shell NODE",
		Short:   "Open a shell in a node",
		Example: "  c9s shell R1\n  c9s shell SR1/A",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file, ok := world.In.(*os.File); ok {
				f.tty = term.IsTerminal(int(file.Fd()))
			}
			return f.run(cmd.Context(), world, args, []string{"/bin/sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"})
		},
	}
	f.add(cmd, world, "t")
	return cmd
}
