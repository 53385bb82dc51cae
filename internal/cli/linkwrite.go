//go:build !nocluster

package cli

import (
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
func (f *linkChange) declare(world IO, rows []linkEnd) error {
	file, err := f.policyFile()
	if err != nil {
		return fmt.Errorf("the lab is changed, but not the policy file: %w", err)
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
			return fmt.Errorf("the lab is changed, but not the policy file: %w", err)
		} // else it is as declared
	}
	if text == before {
		return nil
	}
	if err := atomicfile.Write(file, []byte(text), mode, 0o755); err != nil {
		return fmt.Errorf("the lab is changed, but not the policy file: %w", err)
	}
	fmt.Fprintf(world.Err, "%s: written\n", show.Cell(file))
	return nil
}

// policyFile returns the policy file of --write: the one named, or that next to the topology.
func (f *linkChange) policyFile() (string, error) {
	if f.policy != "" {
		return f.policy, nil
	}
	dir := f.topo
	if dir == "" && topologyHere() {
		dir = "."
	}
	info, err := os.Stat(dir)
	if dir == "" || err != nil {
		return "", errors.New("there is no topology here: name the policy file with --policy, or the topology with --topo")
	}
	if !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	for _, base := range []string{"c9s.yaml", "c9s.yml"} {
		if exists(filepath.Join(dir, base)) {
			return filepath.Join(dir, base), nil
		}
	}
	return filepath.Join(dir, "c9s.yaml"), nil
}
