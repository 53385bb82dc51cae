//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/save"
)

// The states of a node in the table of save.
const (
	savedState       = "saved"
	unchangedState   = "unchanged"
	unsupportedState = "unsupported"
	failedState      = "failed"
)

// savedNode is one row of the table.
type savedNode struct {
	Node  string `json:"node"`
	Kind  string `json:"kind,omitempty"`
	State string `json:"state"`
	// File is where the configuration is saved, "" if it is not.
	File   string `json:"file,omitempty"`
	Reason string `json:"reason,omitempty"`
}

type saveFlags struct {
	nodeRef
	dir      string
	kindsDir string
	history  bool
	git      bool
	timeout  time.Duration
	output   string
}

func newSave(world IO) *cobra.Command {
	f := &saveFlags{}
	cmd := &cobra.Command{
		Use:   "save [NODE...]",
		Short: "Save the running configurations of nodes next to the topology",
		Long: `Save gets the running configuration of each node, as its kind defines, and writes it to
configs/NODE.EXTENSION next to the topology. 'c9s deploy --saved' starts the nodes from these
files. Save replaces a file only if the configuration has arrived in full and has changed.
The exit code is 1 if any node failed.`,
		Example: `  c9s save
  c9s save R1 R2 --history
  c9s save --git
  c9s destroy && c9s deploy --saved`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.output != "" && f.output != "json" {
				return fmt.Errorf("--output %q: use json", f.output)
			}
			at := localFiles(f.topo, f.lab)
			if f.dir != "" {
				at.dir = f.dir
			}
			if at.dir == "" {
				return errors.New("no topology here to save next to: name one with --topo, or a folder with --dir")
			}
			return f.run(cmd.Context(), world, at, args)
		},
	}
	f.add(cmd, world, "t")
	fs := cmd.Flags()
	fs.StringVar(&f.dir, "dir", "", "folder of the saved configurations (default: configs next to the topology)")
	fs.StringVar(&f.kindsDir, "kinds", "", "folder with your own kinds")
	fs.BoolVar(&f.history, "history", false, "also write a copy with the time in its name to history/ in the folder")
	fs.BoolVar(&f.git, "git", false, "commit the configurations that have changed to the Git repository of the folder")
	fs.DurationVar(&f.timeout, "timeout", 2*time.Minute, "time limit for each node")
	fs.StringVarP(&f.output, "output", "o", "", "json prints the table as JSON")
	_ = cmd.MarkFlagDirname("dir")
	_ = cmd.MarkFlagDirname("kinds")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *saveFlags) run(ctx context.Context, world IO, at localLab, names []string) error {
	catalogue, err := ownKinds(world, f.kindsDir)
	if err != nil {
		return err
	}
	client, found, nodes, err := f.find(ctx, world)
	if err != nil {
		return err
	}
	if nodes, err = chosenOnce(nodes, names); err != nil {
		return fail(err)
	}
	c, err := openConfigs(ctx, world, client, found, nodes, catalogue, at)
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	return f.saveAll(ctx, world, c, nodes)
}

// saveAll saves nodes and prints the table.
func (f *saveFlags) saveAll(ctx context.Context, world IO, c *configs, nodes []cluster.Node) error {
	c.timeout = f.timeout
	rows := make([]savedNode, len(nodes))
	bounded.Each(len(nodes), nodesAtOnce, func(i int) { rows[i] = f.one(ctx, c, nodes[i]) })
	if ctx.Err() != nil {
		return exitCode(exitInterrupted)
	}
	return f.finish(ctx, world, c.found.Name, c.dir, rows)
}

// chosenOnce is eachOnce of the nodes with these names, of all for none.
func chosenOnce(nodes []cluster.Node, names []string) (_ []cluster.Node, err error) {
	if len(names) > 0 {
		if nodes, err = cluster.Select(nodes, names); err != nil {
			return nil, err
		}
	}
	return eachOnce(nodes)
}

// eachOnce returns the nodes without repetitions. A node has one file, so two cards of one are
// an error.
func eachOnce(nodes []cluster.Node) ([]cluster.Node, error) {
	var out []cluster.Node
	for _, n := range nodes {
		i := slices.IndexFunc(out, func(o cluster.Node) bool { return o.Name == n.Name })
		switch {
		case i < 0:
			out = append(out, n)
		case out[i].Deployment != n.Deployment || !slices.Equal(out[i].Containers, n.Containers):
			return nil, fmt.Errorf("node %s has one saved configuration, but would be saved twice; name it, or one of its cards, once", n.Name)
		}
	}
	return out, nil
}

// setKinds corrects the kinds: a Deployment has that of its first node only.
func setKinds(nodes []cluster.Node, directory contract.Directory) {
	for _, d := range directory.Nodes {
		for i := range nodes {
			if nodes[i].Name == d.Name && d.Kind != "" {
				nodes[i].Kind = d.Kind
			}
		}
	}
}

// finish prints the table, and commits with --git.
func (f *saveFlags) finish(ctx context.Context, world IO, labName, dir string, rows []savedNode) error {
	if err := f.print(world, rows); err != nil {
		return fail(err)
	}
	if f.git {
		if err := commitSaved(ctx, world, labName, dir, rows); err != nil {
			return fail(err)
		}
	}
	if slices.ContainsFunc(rows, func(r savedNode) bool { return r.State == failedState }) {
		return errFailed
	}
	return nil
}

// one saves one node.
func (f *saveFlags) one(ctx context.Context, c *configs, n cluster.Node) savedNode {
	row := savedNode{Node: n.Name, Kind: n.Kind, State: failedState}
	kind, err := c.kind(n)
	var config []byte
	if err == nil {
		config, err = c.running(ctx, n, kind)
	}
	if err == nil {
		err = f.store(&row, c.file(n, kind), kind, config)
	}
	switch {
	case errors.Is(err, save.ErrUnsupported):
		row.State, row.Reason = unsupportedState, strings.TrimPrefix(err.Error(), save.ErrUnsupported.Error()+": ")
	case err != nil:
		row.Reason = strings.TrimPrefix(err.Error(), "node "+n.Name+": ")
	}
	return row
}

// store writes the configuration, and with --history a copy.
func (f *saveFlags) store(row *savedNode, file string, kind *kinds.Kind, config []byte) error {
	changed, err := save.Store(file, config)
	if err != nil {
		return err
	}
	row.File, row.State = file, unchangedState
	if !changed {
		return nil
	}
	row.State = savedState
	if f.history {
		stamp := time.Now().UTC().Format("20060102T150405Z")
		copied := filepath.Join(filepath.Dir(file), "history", kind.Save.File(row.Node+"-"+stamp))
		return atomicfile.Write(copied, config, 0o600, 0o755)
	}
	return nil
}

func (f *saveFlags) print(world IO, rows []savedNode) error {
	if f.output == "json" {
		return printJSON(world.Out, rows)
	}
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	t.Row("NODE", "KIND", "STATE", "FILE")
	for _, r := range rows {
		what := r.File
		if r.Reason != "" {
			what = r.Reason
		}
		t.Row(r.Node, r.Kind, r.State, what)
	}
	return t.Flush()
}

// someOf lists the first names and the number of the others.
func someOf(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more nodes", strings.Join(names[:most], ", "), len(names)-most)
}

// commitSaved commits the files of the rows that have changed, and nothing else that is
// staged.
func commitSaved(ctx context.Context, world IO, labName, dir string, rows []savedNode) error {
	var files []string
	nodes := map[string]string{} // by their files
	for _, r := range rows {
		if r.File != "" {
			name := filepath.Base(r.File)
			files, nodes[name] = append(files, name), r.Node
		}
	}
	if len(files) == 0 {
		return nil
	}
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
		}
		return strings.TrimSpace(string(out)), nil
	}
	if _, err := git(append([]string{"add", "--"}, files...)...); err != nil {
		return err
	}
	changed, err := git(append([]string{"diff", "--cached", "--name-only", "--"}, files...)...)
	if err != nil || changed == "" {
		return err
	}
	var names []string
	for file := range strings.Lines(changed) {
		names = append(names, nodes[filepath.Base(strings.TrimSpace(file))])
	}
	message := fmt.Sprintf("%s: save the configuration of %s", labName, someOf(names))
	if _, err := git(append([]string{"commit", "-q", "-m", message, "--"}, files...)...); err != nil {
		return err
	}
	fmt.Fprintf(world.Err, "committed: %s\n", show.Cell(message))
	return nil
}
