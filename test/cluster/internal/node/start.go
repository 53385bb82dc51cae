package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/test/cluster/internal/cgroup"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// Hidden subcommands of the program, run as the first process of a node.
const (
	EnterCommand = "node-enter"
	InitCommand  = "node-init"
)

// statusFD is where an init says "ok", or what went wrong.
const statusFD = 3

// Start starts a node, unless it runs. It returns when the node's root is set up
// and its services are being started.
func Start(n site.Node, spec Spec) error {
	if _, running := Running(n); running {
		return nil
	}
	if err := Kill(n); err != nil { // what an earlier, torn start left
		return err
	}
	for _, dir := range []string{n.Run(), n.Logs()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, bind := range spec.Binds {
		if err := os.MkdirAll(bind.From, 0o755); err != nil {
			return err
		}
	}
	if err := cgroup.Create(n.CgroupPath()); err != nil {
		return err
	}
	if err := spec.write(specPath(n)); err != nil {
		return err
	}
	if err := spawn(n); err != nil {
		return fmt.Errorf("starting node %s: %w", n.Name(), err)
	}
	return nil
}

func spawn(n site.Node) error {
	status, statusEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer status.Close()
	log, err := os.OpenFile(filepath.Join(n.Logs(), "init.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()

	cmd := exec.Command("/proc/self/exe", EnterCommand, specPath(n))
	cmd.Dir = "/"
	cmd.Env = []string{"HOME=/root"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{statusEnd}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		statusEnd.Close()
		return err
	}
	statusEnd.Close()
	if err := writePid(n, cmd.Process.Pid); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	said, err := io.ReadAll(status)
	if err == nil && string(said) != "ok" {
		err = fmt.Errorf("its init failed: %s (see %s)", said, log.Name())
	}
	if err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	return cmd.Process.Release()
}
