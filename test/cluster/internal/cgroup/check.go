package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Check reports what the machine's cgroups lack for a node, and how to get it.
func Check() error {
	all, err := Hierarchies()
	if err != nil {
		return err
	}
	if all[0].Unified {
		return checkUnified(Root)
	}
	text, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		return fmt.Errorf("the kernel has no cgroups (CONFIG_CGROUPS): %w", err)
	}
	return checkPresent(enabled(string(text)), "cpu", "cpuacct", "cpuset", "memory", "pids", "devices")
}

// enabled reads /proc/cgroups: "name hierarchy cgroups enabled". It is of version
// 1 alone: kernels without that version of a controller leave it out.
func enabled(text string) []string {
	var controllers []string
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[3] == "1" {
			controllers = append(controllers, fields[0])
		}
	}
	return controllers
}

// checkUnified looks at the root of a v2 hierarchy. In a container that is not
// the kernel's, so that it may hold processes or controllers, not both.
func checkUnified(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if err := checkPresent(strings.Fields(string(text)), "cpu", "cpuset", "memory", "pids"); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "cgroup.type")); errors.Is(err, fs.ErrNotExist) {
		return nil // the kernel's own root
	}
	if unix.Access(root, unix.W_OK) != nil {
		return fmt.Errorf("%s cannot be written to: give this container its cgroups (docker run --privileged), or start the cluster outside", root)
	}
	processes, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
	if err != nil {
		return err
	}
	if len(processes) > 0 {
		return fmt.Errorf("this container's processes are in %s itself, which keeps its controllers from new cgroups: mkdir %[1]s/init, and write each of %[1]s/cgroup.procs to %[1]s/init/cgroup.procs", root)
	}
	return nil
}

func checkPresent(present []string, wanted ...string) error {
	missing := slices.DeleteFunc(wanted, func(controller string) bool { return slices.Contains(present, controller) })
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the cgroup controllers %s are missing: boot without cgroup_disable= (where the firmware adds it, with cgroup_enable=), or enable them in the kernel or for this container", strings.Join(missing, ", "))
}
