// Package sandbox runs the hooks where they can do no harm. Where the kernel allows it
// they have namespaces of their own, among them those of users, processes and mounts,
// with a root folder that holds nothing of the machine, and no network.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// inside marks the process in the sandbox and says what that is.
const inside = "C9S_PLANNER_SANDBOX"

// The values of inside: namespaces of its own, or none, because the kernel does not
// allow it.
const (
	namespaces = "namespaces"
	none       = "none"
)

// unable is the exit code of a process that could not set up its namespaces, before it
// has read anything.
const unable = 97

// vyattacfg is the group that VyOS's hook gives files to.
const vyattacfg = 102

// state is inside's value at the start, which hooks cannot change.
var state = os.Getenv(inside)

// Inside reports whether this process is in the sandbox already, or runs without one
// because the kernel does not allow it.
func Inside() bool { return state != "" }

// Contained reports whether this process has namespaces of its own.
func Contained() bool { return state == namespaces }

// Enter runs this program again in namespaces of its own, with the same arguments and
// streams, and returns its exit code. Where the kernel does not allow that, it runs
// without them, and says so on standard error.
func Enter() (int, error) {
	code, err := again(namespaces)
	if err == nil && code != unable {
		return code, nil
	}
	if err == nil {
		err = errors.New("they could not be set up")
	}
	fmt.Fprintf(os.Stderr, "running without namespaces of its own: %v\n", err)
	return again(none)
}

// again starts this program once more. The error is for a start that failed.
func again(how string) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self)
	cmd.Args = os.Args // the name that it was called by, too
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inside+"="+how)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if how == namespaces {
		isolate(cmd)
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

// isolate gives a command user, process, network, mount, IPC and UTS namespaces. The
// only user in it is the caller, as root, and the only group besides the caller's is
// that of VyOS, where the caller may map it.
func isolate(cmd *exec.Cmd) {
	cmd.Env = append(cmd.Env, "HOME="+work, "TMPDIR=/tmp")
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
		syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	if os.Getuid() == 0 && os.Getgid() == 0 {
		cmd.SysProcAttr.GidMappings = append(cmd.SysProcAttr.GidMappings, syscall.SysProcIDMap{ContainerID: vyattacfg, HostID: vyattacfg, Size: 1})
		cmd.SysProcAttr.GidMappingsEnableSetgroups = true
	}
}

// Prepare sets up the sandbox from inside: the root folder and eth0, or, without
// namespaces, the rules that the kernel has for a process's files. It must come before
// anything is read from outside. Where namespaces turn out to be without effect the
// process ends, so that Enter goes on without them.
func Prepare() error {
	if !Contained() {
		if err := confine(); err != nil {
			fmt.Fprintf(os.Stderr, "running without limits on files and signals: %v\n", err)
		}
		return nil
	}
	err := ownRoot()
	if err == nil {
		err = ownInterfaces()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "setting up namespaces: %v\n", err)
		os.Exit(unable)
	}
	return nil
}
