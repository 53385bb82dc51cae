package node

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
)

// Init is process 1 of a node: it sets the node's root up, starts the services
// and keeps them running. It returns only when the setting up fails.
func Init(path string) error {
	unix.CloseOnExec(statusFD)
	var services *supervisor
	err := report(func() error {
		spec, err := readSpec(path)
		if err != nil {
			return err
		}
		if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
			return fmt.Errorf("setting the hostname: %w", err)
		}
		if err := setupRoot(spec); err != nil {
			return err
		}
		for name, text := range spec.Files {
			if err := host.WriteFile(name, []byte(text), 0o644); err != nil {
				return fmt.Errorf("writing %s: %w", name, err)
			}
		}
		if err := hideSysctls(); err != nil {
			return err
		}
		services = newSupervisor(spec)
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := unix.Write(statusFD, []byte("ok")); err != nil {
		return fmt.Errorf("telling that the node is up: %w", err)
	}
	if err := unix.Close(statusFD); err != nil {
		return err
	}
	services.run()
	return nil
}

// kubeletSysctls are settings of the whole kernel that a kubelet insists on. The
// node sees them as wanted; the host's stay as they are.
var kubeletSysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// hideSysctls mounts plain files with the wanted values over the kernel's.
func hideSysctls() error {
	for name, value := range kubeletSysctls {
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); err != nil {
			continue
		}
		file := filepath.Join("/run/sysctl", name)
		if err := host.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hiding the host's %s: %w", name, err)
		}
	}
	return nil
}
