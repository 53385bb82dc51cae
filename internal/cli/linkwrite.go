//go:build !nocluster

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/c9s-lab/c9s/internal/atomicfile"
	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/fetch"
	"github.com/c9s-lab/c9s/pkg/policy"
)

// declare writes the impairments of interfaces into the policy file. They are changed in the lab
// by then.
func (f *linkChange) declare(ctx context.Context, world IO, lab string, rows []linkEnd) error {
	if err := f.writePolicy(ctx, world, lab, rows); err != nil {
		return fmt.Errorf("the lab is changed, but not the policy file: %w", err)
	}
	return nil
}

func (f *linkChange) writePolicy(ctx context.Context, world IO, lab string, rows []linkEnd) error {
	file, err := f.policyFile(ctx, world, lab)
	if err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target // a link stays one
	}
	text, mode := "", fs.FileMode(0o644)
	switch info, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Size() > fetch.MaxSize:
		return fmt.Errorf("%s has more than %d bytes", file, fetch.MaxSize)
	default:
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text, mode = string(data), info.Mode().Perm()
	}
	before := text
	for _, r := range rows {
		out, err := policy.Declare(file, text, policy.End{Node: r.Node, Interface: r.Interface, Alias: r.Alias}, r.stays)
		switch {
		case err == nil:
			text = out
		case r.stays != nil || r.Changed:
			return err
		} // else it is as declared
	}
	if text == before {
		return nil
	}
	if err := atomicfile.Write(file, []byte(text), mode, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(world.Err, "%s: written\n", show.Cell(file))
	return nil
}

// policyFile returns the policy file of --write: the one named, or that next to the topology.
func (f *linkChange) policyFile(ctx context.Context, world IO, lab string) (string, error) {
	if f.policy != "" {
		return f.policy, nil
	}
	dir := f.topo
	if dir == "" && topologyHere() {
		dir = "."
		if f.lab != "" { // otherwise it is the topology that names the lab
			c, err := compileOf(ctx, world, dir, lab)
			switch {
			case err != nil:
				return "", err
			case c == nil:
				return "", fmt.Errorf("the topology here is not that of lab %s: name the policy file with --policy, or the topology with --topo", lab)
			}
			c.Close()
		}
	}
	info, err := os.Stat(dir)
	if dir == "" || err != nil {
		return "", errors.New("there is no topology here: name the policy file with --policy, or the topology with --topo")
	}
	if !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	for _, base := range policy.FileNames {
		if exists(filepath.Join(dir, base)) {
			return filepath.Join(dir, base), nil
		}
	}
	return filepath.Join(dir, policy.FileNames[0]), nil
}
