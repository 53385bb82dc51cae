//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/access/sshconfig"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/save"
	"github.com/c9s-lab/c9s/pkg/snapshot"
)

// labCopyFlags are the flags of the commands that copy a lab's topology with all its files.
type labCopyFlags struct {
	topoFlags
	output string
}

func (f *labCopyFlags) add(cmd *cobra.Command) {
	f.topoFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.output, "output", "o", "", "json prints the result as JSON")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *labCopyFlags) check() error {
	if f.output != "" && f.output != "json" {
		return fmt.Errorf("--output %q: use json", f.output)
	}
	return nil
}

// collect compiles the topology and returns its files, with the saved configurations of nodes.
func (f *labCopyFlags) collect(ctx context.Context, world IO, namespace string) (*snapshot.Snapshot, *pipeline.Compiled, error) {
	c, err := f.compile(ctx, world, f.topo, pipeline.Input{Namespace: namespace})
	if err != nil {
		return nil, nil, err
	}
	if c.Lab == nil || hasErrors(c.Diags) {
		report(world, c.Diags)
		c.Close()
		return nil, nil, errFailed
	}
	s := &snapshot.Snapshot{Info: snapshot.Info{
		Lab: c.Lab.Name, Namespace: c.Lab.Namespace, Created: time.Now().UTC().Truncate(time.Second), C9s: Version,
	}}
	if err := f.files(s, c); err != nil {
		c.Close()
		return nil, nil, fail(err)
	}
	return s, c, nil
}

// files fills in the files of a topology.
func (f *labCopyFlags) files(s *snapshot.Snapshot, c *pipeline.Compiled) error {
	if len(f.vars) > 0 {
		return errors.New("--vars: these files would not be stored; name them as the topology, with _vars before the extension, and they are")
	}
	var extra []string
	dir := c.Source.Dir
	if test := testFile(filepath.Join(dir, c.Source.Base), ""); test != "" && dir != "" {
		extra = append(extra, filepath.Base(test))
	}
	if f.kindsDir != "" {
		full, err := filepath.Abs(f.kindsDir)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, full)
		if err != nil || !filepath.IsLocal(rel) || rel == "." {
			return fmt.Errorf("--kinds %s is not a folder next to the topology", f.kindsDir)
		}
		s.Kinds = filepath.ToSlash(rel)
		extra = append(extra, s.Kinds)
	}
	if err := s.Collect(c.Source, extra...); err != nil {
		return err
	}
	if err := f.mapped(s); err != nil {
		return err
	}
	if f.policy != "" {
		data, err := os.ReadFile(f.policy)
		if err != nil {
			return err
		}
		s.Set(snapshot.File{Name: "c9s.yaml", Mode: 0o644, Data: data})
	}
	for _, n := range c.Lab.Nodes {
		node := snapshot.Node{Name: n.Name, Kind: n.Kind, From: snapshot.FromNowhere}
		kind, ok := c.Kinds.Lookup(n.Kind)
		if !ok || kind.Save == nil {
			s.Nodes = append(s.Nodes, node)
			continue
		}
		name := kind.Save.File(n.Name)
		data, err := os.ReadFile(filepath.Join(dir, kinds.SavedFolder, name))
		switch {
		case err == nil:
			node.From, node.File = snapshot.FromSaved, path.Join(kinds.SavedFolder, name)
			s.Set(snapshot.File{Name: node.File, Mode: 0o600, Data: data})
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		s.Nodes = append(s.Nodes, node)
	}
	return nil
}

// mapped adds the files of --map-file under the names that the topology has for them.
func (f *labCopyFlags) mapped(s *snapshot.Snapshot) error {
	pairs, err := parsePairs("map-file", f.mapFiles)
	if err != nil {
		return err
	}
	for from, to := range pairs {
		name := filepath.ToSlash(filepath.Clean(from))
		if !filepath.IsLocal(from) {
			s.Missing = append(s.Missing, from)
			continue
		}
		info, err := os.Stat(to)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(to)
		if err != nil {
			return err
		}
		s.Set(snapshot.File{Name: name, Mode: info.Mode().Perm(), Data: data})
	}
	return nil
}

type snapshotFlags struct {
	labCopyFlags
	targetFlags
	namespace string
	offline   bool
	timeout   time.Duration
}

func newSnapshot(world IO) *cobra.Command {
	f := &snapshotFlags{}
	cmd := &cobra.Command{
		Use:   "snapshot NAME",
		Short: "Store a lab with its configurations as one folder or archive",
		Long: `Snapshot stores the topology, the files that it reads, the policy, the addresses and ids of
the lab, and the running configurations of its nodes: in a folder, or in an archive if NAME ends
in .tar.gz. Nodes that do not run, or whose configuration c9s cannot save, are stored with their
saved configuration, if there is one. With --saved, all are, and no cluster is needed. The files
next to the topology do not change.

If the configuration of a running node does not arrive, snapshot stores nothing and exits with
1. Only you can read a snapshot, because configurations and licences are in it.
'c9s restore' brings it back.`,
		Example: `  c9s snapshot before-upgrade.tar.gz
  c9s snapshot snapshots/monday
  c9s snapshot lesson-1.tar.gz --saved`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(f.check(), notEmpty(args)); err != nil {
				return err
			}
			return f.run(cmd.Context(), world, args[0])
		},
	}
	f.labCopyFlags.add(cmd)
	f.targetFlags.add(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the lab (default: find it)")
	fs.BoolVar(&f.offline, "saved", false, "store the saved configurations, not the running ones")
	fs.DurationVar(&f.timeout, "timeout", configTime, "time limit for each node")
	return cmd
}

func (f *snapshotFlags) run(ctx context.Context, world IO, name string) error {
	if _, err := os.Lstat(name); err == nil {
		return fail(fmt.Errorf("%s exists: choose another name", name))
	}
	s, c, err := f.collect(ctx, world, f.namespace)
	if err != nil {
		return err
	}
	defer c.Close()
	if f.offline {
		a := c.Lab.Allocations
		s.Allocations = &a
	} else if err := f.running(ctx, world, s, c); err != nil {
		return err
	}
	failed := slices.ContainsFunc(s.Nodes, func(n snapshot.Node) bool { return n.From == failedState })
	if !failed {
		if err := s.Write(name); err != nil {
			return fail(err)
		}
	}
	if err := f.print(world, name, s, failed); err != nil {
		return fail(err)
	}
	if failed {
		return errFailed
	}
	return nil
}

// running adds the allocations and the running configurations of the lab in the cluster. The
// source of a node that failed is "failed".
func (f *snapshotFlags) running(ctx context.Context, world IO, s *snapshot.Snapshot, compiled *pipeline.Compiled) error {
	ref := nodeRef{targetFlags: f.targetFlags, lab: s.Lab, namespace: f.namespace}
	client, found, nodes, err := ref.find(ctx, world)
	if err != nil {
		return err
	}
	s.Namespace = found.Namespace
	if s.Allocations, err = client.Allocations(ctx, found.Namespace); err != nil {
		return fail(err)
	}
	nodes = slices.DeleteFunc(nodes, func(n cluster.Node) bool {
		return n.Stopped || !slices.ContainsFunc(s.Nodes, func(m snapshot.Node) bool { return m.Name == n.Name })
	})
	if nodes, err = eachOnce(nodes); err != nil {
		return fail(err)
	}
	c, err := openConfigs(ctx, world, client, found, nodes, compiled.Kinds, localLab{topo: f.topo})
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	c.timeout = f.timeout
	configurations, errs := make([][]byte, len(nodes)), make([]error, len(nodes))
	bounded.Each(len(nodes), nodesAtOnce, func(i int) {
		var kind *kinds.Kind
		if kind, errs[i] = c.kind(nodes[i]); errs[i] == nil {
			configurations[i], errs[i] = c.running(ctx, nodes[i], kind)
		}
	})
	if ctx.Err() != nil {
		return exitCode(exitInterrupted)
	}
	for i, n := range nodes {
		m := &s.Nodes[slices.IndexFunc(s.Nodes, func(m snapshot.Node) bool { return m.Name == n.Name })]
		switch err := errs[i]; {
		case errors.Is(err, save.ErrUnsupported):
			m.Reason = strings.TrimPrefix(err.Error(), save.ErrUnsupported.Error()+": ")
		case err != nil:
			m.From, m.File, m.Reason = failedState, "", strings.TrimPrefix(err.Error(), "node "+n.Name+": ")
		default:
			kind, _ := compiled.Kinds.Lookup(n.Kind)
			m.From, m.File = snapshot.FromRunning, path.Join(kinds.SavedFolder, kind.Save.File(n.Name))
			s.Set(snapshot.File{Name: m.File, Mode: 0o600, Data: configurations[i]})
		}
	}
	return nil
}

// snapshotResult is -o json of snapshot and restore.
type snapshotResult struct {
	// Snapshot is the folder or archive, "" if nothing was stored; Folder is where it was
	// restored, and Deploy the command that runs it.
	Snapshot  string          `json:"snapshot,omitempty"`
	Folder    string          `json:"folder,omitempty"`
	Deploy    string          `json:"deploy,omitempty"`
	Lab       string          `json:"lab"`
	Namespace string          `json:"namespace"`
	Created   time.Time       `json:"created"`
	Nodes     []snapshot.Node `json:"nodes"`
	Files     int             `json:"files"`
	Bytes     int             `json:"bytes"`
	Missing   []string        `json:"missing,omitempty"`
}

func resultOf(s *snapshot.Snapshot) snapshotResult {
	r := snapshotResult{Lab: s.Lab, Namespace: s.Namespace, Created: s.Created, Nodes: s.Nodes, Missing: s.Missing}
	for _, f := range s.Files {
		if !f.Dir {
			r.Files++
			r.Bytes += len(f.Data)
		}
	}
	return r
}

func (f *snapshotFlags) print(world IO, name string, s *snapshot.Snapshot, failed bool) error {
	warnMissing(world, s)
	r := resultOf(s)
	if !failed {
		r.Snapshot = name
	}
	if f.output == "json" {
		return printJSON(world.Out, r)
	}
	t := show.NewTable(tabwriter.NewWriter(world.Out, 0, 0, 2, ' ', 0))
	t.Row("NODE", "KIND", "CONFIGURATION", "REASON")
	for _, n := range s.Nodes {
		t.Row(n.Name, n.Kind, n.From, n.Reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if failed {
		_, err := fmt.Fprintln(world.Err, "nothing was stored: --saved stores the saved configurations instead")
		return err
	}
	_, err := fmt.Fprintf(world.Err, "%s: %s, %s\n", show.Cell(name), diag.Count(r.Files, "file"), size(uint64(r.Bytes)))
	return err
}

// warnMissing names what a snapshot lacks.
func warnMissing(world IO, s *snapshot.Snapshot) {
	if len(s.Missing) > 0 {
		fmt.Fprintf(world.Err, "warning: the topology also reads links or files outside its folder, which are left out: %s\n", show.Cell(diag.Few(s.Missing, 5)))
	}
}

type restoreFlags struct{ output string }

func newRestore(world IO) *cobra.Command {
	f := &restoreFlags{}
	cmd := &cobra.Command{
		Use:   "restore SNAPSHOT [FOLDER]",
		Short: "Bring back a lab from a snapshot",
		Long: `Restore writes the topology of a snapshot, its files and its configurations to a new folder,
and prints the command that deploys the lab with them. It changes no lab. Restore rejects archives
with links, with names outside the folder, and with more than 10,000 files or 256 MiB. Look at the
topology of a snapshot from somebody else before you deploy it: it can name files of this machine.`,
		Example: `  c9s restore before-upgrade.tar.gz
  c9s restore snapshots/monday lab-monday`,
		Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if f.output != "" && f.output != "json" {
				return fmt.Errorf("--output %q: use json", f.output)
			}
			if err := notEmpty(args); err != nil {
				return err
			}
			dir := snapshot.Base(args[0])
			if len(args) > 1 {
				dir = args[1]
			}
			return f.run(world, args[0], dir)
		},
	}
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "json prints the result as JSON")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *restoreFlags) run(world IO, name, dir string) error {
	s, err := snapshot.Read(name)
	if err != nil {
		return fail(err)
	}
	if err := s.Restore(dir); err != nil {
		return fail(err)
	}
	warnMissing(world, s)
	r := resultOf(s)
	r.Folder, r.Deploy = dir, deployCommand(dir, s)
	if f.output == "json" {
		return fail(printJSON(world.Out, r))
	}
	fmt.Fprintf(world.Err, "lab %s of %s: %s in %s. To deploy it:\n", show.Cell(s.Lab), s.Created.Format(time.DateTime), diag.Count(r.Files, "file"), show.Cell(dir))
	_, err = io.WriteString(world.Out, show.Cell(r.Deploy)+"\n")
	return fail(err)
}

// deployCommand is the command that deploys a restored lab.
func deployCommand(dir string, s *snapshot.Snapshot) string {
	words := []string{"c9s", "deploy", filepath.Join(dir, filepath.FromSlash(s.Topology))}
	if s.Namespace != "" {
		words = append(words, "-n", s.Namespace)
	}
	if s.Kinds != "" {
		words = append(words, "--kinds", filepath.Join(dir, filepath.FromSlash(s.Kinds)))
	}
	if slices.ContainsFunc(s.Nodes, func(n snapshot.Node) bool { return n.File != "" }) {
		words = append(words, "--saved")
	}
	if s.Allocations != nil {
		words = append(words, "--allocations", filepath.Join(dir, snapshot.AllocationsFile))
	}
	for i, w := range words {
		words[i] = sshconfig.Quote(w)
	}
	return strings.Join(words, " ")
}
