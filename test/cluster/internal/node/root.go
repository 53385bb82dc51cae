package node

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/test/cluster/internal/cgroup"
)

// setupRoot gives the node a root of its own: the host's files, with the node's
// changes in memory, so that the host sees none of them. What the node keeps on
// disk is bound in.
func setupRoot(spec Spec) error {
	hierarchies, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the host's mounts private to the node: %w", err)
	}
	root, err := overlayHost(spec.Scratch)
	if err != nil {
		return err
	}
	if err := mountKernel(root, hierarchies); err != nil {
		return err
	}
	for _, bind := range spec.Binds {
		if err := bindInto(root, bind); err != nil {
			return err
		}
	}
	return becomeRoot(root)
}

// overlayHost stacks memory over the host's root, and over each further file
// system that programs may lie on.
func overlayHost(scratch string) (root string, err error) {
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return "", err
	}
	if err := unix.Mount("tmpfs", scratch, "tmpfs", 0, "mode=755"); err != nil {
		return "", fmt.Errorf("mounting a tmpfs for the node's changes: %w", err)
	}
	root = filepath.Join(scratch, "root")
	mounted, err := mountPoints()
	if err != nil {
		return "", err
	}
	for i, dir := range []string{"/", "/usr", "/opt", "/home", "/root", "/var", "/var/lib"} {
		if !mounted[dir] {
			continue
		}
		upper, work := filepath.Join(scratch, fmt.Sprint("upper", i)), filepath.Join(scratch, fmt.Sprint("work", i))
		target := filepath.Join(root, dir)
		for _, needed := range []string{upper, work, target} {
			if err := os.MkdirAll(needed, 0o755); err != nil {
				return "", err
			}
		}
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work)
		if err := unix.Mount("overlay", target, "overlay", 0, options); err != nil {
			return "", fmt.Errorf("stacking memory over the host's %s: %w", dir, err)
		}
	}
	return root, nil
}

func mountPoints() (map[string]bool, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	points := map[string]bool{"/": true}
	scan := bufio.NewScanner(f)
	for scan.Scan() {
		if fields := strings.Fields(scan.Text()); len(fields) > 4 {
			points[fields[4]] = true
		}
	}
	return points, scan.Err()
}

// mountKernel mounts what the kernel shows: processes, devices and cgroups as
// the node's namespaces have them.
func mountKernel(root string, hierarchies []cgroup.Hierarchy) error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV, ""},
		{"sysfs", "/sys", "sysfs", unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV, ""},
		{"/dev", "/dev", "", unix.MS_BIND | unix.MS_REC, ""},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
		{"tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	} {
		target := filepath.Join(root, m.target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.source, target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	return cgroup.Mount(root, hierarchies)
}

func bindInto(root string, bind Bind) error {
	target := filepath.Join(root, bind.To)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(bind.From, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("binding %s to %s: %w", bind.From, bind.To, err)
	}
	return nil
}

// becomeRoot makes the new root the node's only one, and lets Pods share their
// mounts within the node (mountPropagation: Bidirectional).
func becomeRoot(root string) error {
	const former = "/.host"
	if err := os.MkdirAll(filepath.Join(root, former), 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, filepath.Join(root, former)); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	return errors.Join(
		os.Chdir("/"),
		unix.Unmount(former, unix.MNT_DETACH),
		os.Remove(former),
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""),
	)
}
