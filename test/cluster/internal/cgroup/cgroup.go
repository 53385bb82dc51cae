// Package cgroup gives every node a cgroup of its own in each hierarchy of the
// host, of version 1 or 2, finds what runs in it, and removes it.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
)

// Root is where every Linux system mounts its hierarchies.
const Root = "/sys/fs/cgroup"

// A Hierarchy is one mounted tree of cgroups.
type Hierarchy struct {
	Dir     string // its mount point
	Unified bool   // cgroup v2
	Options string // what mounts the same hierarchy again (v1)
}

// Hierarchies lists those in use: the unified one alone on a cgroup v2 host, all
// of version 1 otherwise.
func Hierarchies() ([]Hierarchy, error) {
	var fsinfo unix.Statfs_t
	if err := unix.Statfs(Root, &fsinfo); err != nil {
		return nil, fmt.Errorf("looking at %s: %w", Root, err)
	}
	if fsinfo.Type == unix.CGROUP2_SUPER_MAGIC {
		return []Hierarchy{{Dir: Root, Unified: true}}, nil
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Hierarchy
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if h, ok := parseMount(scan.Text()); ok {
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no cgroup hierarchy is mounted under %s: mount one (Debian: apt-get install cgroupfs-mount), or boot with systemd", Root)
	}
	return all, nil
}

// parseMount reads a line of mountinfo: "… root dir options - cgroup source super-options".
func parseMount(line string) (Hierarchy, bool) {
	left, right, ok := strings.Cut(line, " - ")
	mount, super := strings.Fields(left), strings.Fields(right)
	if !ok || len(mount) < 5 || len(super) < 3 || super[0] != "cgroup" || filepath.Dir(mount[4]) != Root {
		return Hierarchy{}, false
	}
	var options []string
	for _, option := range strings.Split(super[2], ",") {
		switch {
		case option == "rw", option == "ro", strings.HasPrefix(option, "release_agent="):
		case strings.HasPrefix(option, "name="):
			options = append(options, "none", option)
		default:
			options = append(options, option)
		}
	}
	return Hierarchy{Dir: mount[4], Options: strings.Join(options, ",")}, true
}

// Create makes a cgroup and its parents in every hierarchy.
func Create(path string) error {
	all, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		dir := h.Dir
		for _, part := range strings.Split(path, "/") {
			parent := dir
			dir = filepath.Join(dir, part)
			if err := h.prepare(parent); err != nil {
				return err
			}
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("making a cgroup: %w", err)
			}
			if err := h.inheritCPUs(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare lets the children of a v2 cgroup use its controllers.
func (h Hierarchy) prepare(parent string) error {
	if !h.Unified {
		return nil
	}
	return EnableControllers(parent)
}

// EnableControllers passes every controller of a v2 cgroup on to its children.
func EnableControllers(dir string) error {
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(available)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0); err != nil {
			return fmt.Errorf("enabling the cgroup controller %s below %s: %w", controller, dir, err)
		}
	}
	return nil
}

// KeepControllers writes down, unless that was done, which controllers the host
// passes on from the root of a v2 hierarchy: Create adds the others.
func KeepControllers(file string) error {
	all, err := Hierarchies()
	if err != nil || !all[0].Unified {
		return err
	}
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	enabled, err := os.ReadFile(filepath.Join(Root, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	return host.WriteFile(file, enabled, 0o644)
}

// RestoreControllers ends what Create added, except what others use by now, and
// removes the file.
func RestoreControllers(file string) error {
	return restoreControllers(Root, file)
}

func restoreControllers(root, file string) error {
	before, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	control := filepath.Join(root, "cgroup.subtree_control")
	enabled, err := os.ReadFile(control)
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(enabled)) {
		if slices.Contains(strings.Fields(string(before)), controller) {
			continue
		}
		if err := os.WriteFile(control, []byte("-"+controller), 0); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("disabling the cgroup controller %s: %w", controller, err)
		}
	}
	return os.Remove(file)
}

// inheritCPUs fills what a new v1 cpuset lacks: without it nothing may join.
func (h Hierarchy) inheritCPUs(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		if h.Unified {
			return nil
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0); err != nil {
			return fmt.Errorf("setting up a cpuset: %w", err)
		}
	}
	return nil
}

// Join moves the calling process into a cgroup of every hierarchy.
func Join(path string) error {
	all, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := os.WriteFile(filepath.Join(h.Dir, path, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("joining a cgroup: %w", err)
		}
	}
	return nil
}

// Processes lists the host's process ids of everything in a cgroup and below.
func Processes(path string) ([]int, error) {
	all, err := Hierarchies()
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	for _, h := range all {
		err := filepath.WalkDir(filepath.Join(h.Dir, path), func(file string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || entry.Name() != "cgroup.procs" {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return nil // the cgroup went away, or is a threaded one of v2
			}
			for _, field := range strings.Fields(string(text)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					seen[pid] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	pids := make([]int, 0, len(seen))
	for pid := range seen {
		pids = append(pids, pid)
	}
	sort.Ints(pids)
	return pids, nil
}

// Remove removes a cgroup and all below it, from every hierarchy. Nothing may
// run in it any more. Its parent "c9s" goes with the last one.
func Remove(path string) error {
	all, err := Hierarchies()
	if err != nil {
		return err
	}
	var problems []error
	for _, h := range all {
		problems = append(problems, removeTree(filepath.Join(h.Dir, path)))
		for parent := filepath.Dir(path); parent != "."; parent = filepath.Dir(parent) {
			if err := os.Remove(filepath.Join(h.Dir, parent)); err != nil {
				break // another cluster's, or gone already
			}
		}
	}
	return errors.Join(problems...)
}

func removeTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := unix.Rmdir(dirs[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing cgroup %s: %w", dirs[i], err)
		}
	}
	return nil
}
