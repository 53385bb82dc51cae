// Package sandbox runs the hooks where they cannot do harm: in namespaces of
// their own, without a network.
package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netlink"
)

// inside marks the process in the sandbox.
const inside = "C9S_PLANNER_SANDBOX"

// namespaces is its value where the process has namespaces of its own.
const namespaces = "namespaces"

// Inside tells whether this process is in the sandbox already, or runs without
// one because the kernel does not allow it.
func Inside() bool { return os.Getenv(inside) != "" }

// Enter runs this program again in user, network, mount, IPC and UTS
// namespaces of its own, with the same arguments and streams, and returns its exit
// code. Where the kernel does not allow that, it runs without them, and says so
// on standard error.
func Enter() (int, error) {
	code, err := again(syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS)
	if err == nil {
		return code, nil
	}
	fmt.Fprintf(os.Stderr, "running without namespaces of its own: %v\n", err)
	return again(0)
}

// again starts this program once more. The error is for a start that failed.
func again(flags uintptr) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	value := namespaces
	if flags == 0 {
		value = "none"
	}
	cmd.Env = append(os.Environ(), inside+"="+value)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	if flags&syscall.CLONE_NEWUSER != 0 {
		size := 1
		if os.Getuid() == 0 {
			size = 1 << 16 // some hooks give files to the groups of their device
		}
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: size}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: size}}
		cmd.SysProcAttr.GidMappingsEnableSetgroups = size > 1
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if err := cmd.Wait(); err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			return exit.ExitCode(), nil
		}
		return 0, err
	}
	return 0, nil
}

// Prepare gives the sandbox's network namespace the interface eth0 that some
// hooks look for, as one end of a pair. It does nothing outside a sandbox.
func Prepare() error {
	if os.Getenv(inside) != namespaces {
		return nil
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "mp0"}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("making eth0 in the sandbox: %w", err)
	}
	return nil
}
