package prepare

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// forgetMark, in a folder, has the next Run empty the folder first.
const forgetMark = ".c9s-forget"

// Forget marks the folders of nodes, so that their next Pod starts without what their devices
// have saved; with volumes also the named volumes on the Pod's claim. With undo, it removes the
// marks.
func Forget(paths Paths, nodes []string, volumes, undo bool) error {
	paths = paths.withDefaults()
	m, err := readManifest(paths.Plan)
	if err != nil {
		return err
	}
	for _, name := range nodes {
		i := slices.IndexFunc(m.Nodes, func(n contract.ManifestNode) bool { return n.Name == name })
		if i < 0 {
			return fmt.Errorf("this Pod has no node %s", name)
		}
		if err := mark(filepath.Join(paths.Nodes, m.Nodes[i].ID), undo); err != nil {
			return fmt.Errorf("the data of node %s: %w", name, err)
		}
	}
	if volumes && len(m.Volumes) > 0 {
		if err := mark(paths.Volumes, undo); err != nil {
			return fmt.Errorf("the volumes: %w", err)
		}
	}
	return nil
}

// mark adds or removes the mark of a folder.
func mark(dir string, undo bool) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// What a device left under this name is not written to.
	if err := root.RemoveAll(forgetMark); err != nil || undo {
		return err
	}
	file, err := root.OpenFile(forgetMark, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// forget empties a folder that has the mark. The mark goes last, so that the next run completes
// an interrupted one.
func forget(dir string) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat(forgetMark); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != forgetMark {
			if err := root.RemoveAll(e.Name()); err != nil {
				return err
			}
		}
	}
	return root.RemoveAll(forgetMark)
}
