//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/save"
	"github.com/c9s-lab/c9s/pkg/snapshot"
)

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
