package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// leaf is where a v2 node's own processes sit: a cgroup with children that use
// controllers may have no processes itself.
const leaf = "init"

// Mount mounts every hierarchy again under root, so that a process in a cgroup
// namespace sees its own cgroup as the root of each.
func Mount(root string, all []Hierarchy) error {
	dir := filepath.Join(root, Root)
	if all[0].Unified {
		if err := unix.Mount("cgroup2", dir, "cgroup2", 0, ""); err != nil {
			return fmt.Errorf("mounting cgroup v2: %w", err)
		}
		return delegate(dir)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting a tmpfs for cgroups: %w", err)
	}
	for _, h := range all {
		point := filepath.Join(root, h.Dir)
		if err := os.Mkdir(point, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("cgroup", point, "cgroup", 0, h.Options); err != nil {
			return fmt.Errorf("mounting the cgroup hierarchy %s: %w", h.Options, err)
		}
		if err := linkParts(dir, filepath.Base(point)); err != nil {
			return err
		}
	}
	return nil
}

// linkParts lets a hierarchy of several controllers be found by each: cpu and
// cpuacct are links to cpu,cpuacct.
func linkParts(dir, name string) error {
	parts := strings.Split(name, ",")
	if len(parts) == 1 {
		return nil
	}
	for _, part := range parts {
		if err := os.Symlink(name, filepath.Join(dir, part)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// delegate moves the calling process into a leaf and lets its siblings use the
// controllers.
func delegate(dir string) error {
	own := filepath.Join(dir, leaf)
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("joining %s: %w", own, err)
	}
	return EnableControllers(dir)
}
