//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
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
