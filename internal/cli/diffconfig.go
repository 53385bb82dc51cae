//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/save"
)

// configDiff is one node of diff --config.
type configDiff struct {
	Node string `json:"node"`
	// Against is saved or declared.
	Against string `json:"against,omitempty"`
	// Changed reports whether the configurations differ; Diff is a unified diff.
	Changed bool   `json:"changed"`
	Diff    string `json:"diff,omitempty"`
	// Reason says why they could not be compared.
	Reason string `json:"reason,omitempty"`
	failed bool
}

// configs compares the running configurations of nodes.
func (f *diffFlags) configs(ctx context.Context, world IO, names []string) error {
	if f.output != "" && f.output != "json" {
		return fmt.Errorf("--output %q: use json", f.output)
	}
	compiled, err := f.compile(ctx, world, f.topo, pipeline.Input{Namespace: f.namespace})
	if err != nil {
		return err
	}
	defer compiled.Close()
	if compiled.Lab == nil || hasErrors(compiled.Diags) {
		report(world, compiled.Diags)
		return errFailed
	}
	ref := nodeRef{targetFlags: f.targetFlags, lab: compiled.Lab.Name, namespace: f.namespace}
	client, found, nodes, err := ref.find(ctx, world)
	if err != nil {
		return err
	}
	if nodes, err = chosenOnce(nodes, names); err != nil {
		return fail(err)
	}
	c, err := openConfigs(ctx, world, client, found, nodes, compiled.Kinds, localFiles(f.topo, ""))
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	only := map[string]bool{}
	for _, n := range nodes {
		only[n.Name] = true
	}
	plans, _, err := f.plan(ctx, world, compiled, only)
	if err != nil {
		return err
	}
	rows := make([]configDiff, len(nodes))
	bounded.Each(len(nodes), nodesAtOnce, func(i int) { rows[i] = f.compareConfig(ctx, c, compiled.Lab, plans[nodes[i].Name], nodes[i]) })
	if ctx.Err() != nil {
		return exitCode(exitInterrupted)
	}
	return f.printConfigs(world, rows)
}

// compareConfig compares the running configuration of a node.
func (f *diffFlags) compareConfig(ctx context.Context, c *configs, l *lab.Lab, p *plan.Plan, n cluster.Node) configDiff {
	row := configDiff{Node: n.Name}
	no := func(err error) configDiff {
		row.failed = !errors.Is(err, save.ErrUnsupported)
		row.Reason = strings.TrimPrefix(strings.TrimPrefix(err.Error(), save.ErrUnsupported.Error()+": "), "node "+n.Name+": ")
		return row
	}
	kind, err := c.kind(n)
	if err != nil {
		return no(err)
	}
	var before []byte
	if !f.declared {
		if before, err = c.saved(n, kind); err != nil {
			return no(err)
		}
		row.Against = "saved"
	}
	if before == nil {
		row.Against = "declared"
		var ok bool
		if before, ok = declaredConfig(l, p, kind); !ok {
			return no(fmt.Errorf("%w: nothing is saved, and the topology has no configuration of the node", save.ErrUnsupported))
		}
	}
	running, err := c.running(ctx, n, kind)
	if err == nil {
		name := kind.Save.File(n.Name)
		row.Diff, err = save.Diff(kind.Save, path.Join(row.Against, name), before, path.Join("running", name), running)
	}
	if err != nil {
		return no(err)
	}
	row.Changed = row.Diff != ""
	return row
}

// declaredConfig returns the configuration that a plan starts a node with: the file that its
// kind reads, or one that is mounted where the device reads it.
func declaredConfig(l *lab.Lab, p *plan.Plan, kind *kinds.Kind) ([]byte, bool) {
	if p == nil {
		return nil, false
	}
	targets := []string{kind.Startup.File}
	for _, file := range kind.Startup.Extensions {
		targets = append(targets, file)
	}
	for _, c := range p.Containers {
		for _, m := range c.Mounts {
			if kind.Save != nil && kind.Save.Target != "" && m.Target == kind.Save.Target {
				targets = append(targets, m.Path)
			}
		}
	}
	for _, target := range targets {
		for _, file := range p.Files {
			if target == "" || file.Path != filepath.ToSlash(target) || file.Dir {
				continue
			}
			if file.Ref != nil {
				return l.Files[file.Ref.Digest], true
			}
			return file.Content, true
		}
	}
	return nil, false
}

func (f *diffFlags) printConfigs(world IO, rows []configDiff) error {
	changed, failed := false, false
	for _, r := range rows {
		changed, failed = changed || r.Changed, failed || r.failed
	}
	if f.output == "json" {
		if err := printJSON(world.Out, rows); err != nil {
			return fail(err)
		}
	} else {
		for _, r := range rows {
			switch {
			case r.Reason != "":
				fmt.Fprintf(world.Err, "%s: %s\n", show.Cell(r.Node), show.Cell(r.Reason))
			case r.Changed:
				fmt.Fprint(show.Stream(world.Out), r.Diff)
			default:
				fmt.Fprintf(world.Err, "%s: the running configuration is the %s one\n", show.Cell(r.Node), r.Against)
			}
		}
	}
	if failed || changed && f.exitCode {
		return errFailed
	}
	return nil
}
