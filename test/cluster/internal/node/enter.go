package node

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/test/cluster/internal/cgroup"
)

// Enter is the first half of a node's first process: it joins the node's cgroups
// and network namespace, makes a cgroup namespace, and becomes the init. Both
// namespaces belong to a thread; executing makes that thread the process.
func Enter(path string) error {
	runtime.LockOSThread()
	return report(func() error {
		spec, err := readSpec(path)
		if err != nil {
			return err
		}
		if err := cgroup.Join(spec.Cgroup); err != nil {
			return err
		}
		if err := joinNetns(spec.NetnsPath); err != nil {
			return err
		}
		if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
			return fmt.Errorf("making a cgroup namespace: %w", err)
		}
		return unix.Exec("/proc/self/exe", []string{os.Args[0], InitCommand, path}, os.Environ())
	})
}

func joinNetns(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering %s: %w", path, err)
	}
	return nil
}

func readSpec(path string) (Spec, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Spec{}, err
	}
	var spec Spec
	return spec, json.Unmarshal(text, &spec)
}

// report tells the process that started the node what went wrong, if anything did.
func report(f func() error) error {
	err := f()
	if err != nil {
		_, _ = unix.Write(statusFD, []byte(err.Error()))
	}
	return err
}
