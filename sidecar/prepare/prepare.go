// Package prepare lays out, before a Pod's devices start, what its manifest asks
// for: files with verified digests, owners and modes, folders, links, and the
// exec helper with its programs. The sidecar runs it in a process of its own, which
// keeps only the capabilities for that.
package prepare

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Paths are the folders that prepare works in, and the helper's binary. The zero
// value of a field is the place where it is in the Pod.
type Paths struct {
	Plan, Files, Nodes, Volumes, State string
	// Helper is copied into every container that has a program; this very
	// program if empty.
	Helper string
}

func (p Paths) withDefaults() Paths {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&p.Plan, contract.PlanDir)
	set(&p.Files, contract.FilesDir)
	set(&p.Nodes, contract.NodesDir)
	set(&p.Volumes, contract.VolumesDir)
	set(&p.State, contract.StateDir)
	set(&p.Helper, "/proc/self/exe")
	return p
}

// Run lays everything out. It may be run again over what an earlier run left,
// whole or not. All that fails is in the error, a line each.
func Run(paths Paths) error {
	paths = paths.withDefaults()
	m, err := readManifest(paths.Plan)
	if err != nil {
		return err
	}
	// Modes are the manifest's, not what a umask leaves of them.
	defer setUmask(setUmask(0))
	var errs []error
	for _, n := range m.Nodes {
		dir := filepath.Join(paths.Nodes, n.ID)
		if err := forget(dir); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
		if len(n.Entries) == 0 {
			continue // the sidecar may not mount its folder
		}
		if err := layOut(dir, paths.Files, n.Entries); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	if err := forget(paths.Volumes); err != nil {
		errs = append(errs, fmt.Errorf("the volumes: %w", err))
	}
	for _, v := range m.Volumes {
		if err := makeVolume(filepath.Join(paths.Volumes, v)); err != nil {
			errs = append(errs, err)
		}
	}
	if err := layOutPrograms(paths, m); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func readManifest(dir string) (*contract.Manifest, error) {
	file := filepath.Join(dir, contract.ManifestFile)
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	return contract.ParseManifest(data)
}

// makeVolume creates a named volume that every user may write, as Docker does. It keeps existing
// contents.
func makeVolume(dir string) error {
	err := os.Mkdir(dir, 0o777)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}
