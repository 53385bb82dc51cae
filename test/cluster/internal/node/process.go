package node

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/test/cluster/internal/cgroup"
	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// writePid keeps the process id of an init together with its start time, since
// ids are used again.
func writePid(n site.Node, pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return err
	}
	return host.WriteFile(n.PidFile(), []byte(fmt.Sprintf("%d %s\n", pid, started)), 0o644)
}

// Running returns the process id of a node's init, if it lives.
func Running(n site.Node) (pid int, running bool) {
	text, err := os.ReadFile(n.PidFile())
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) != 2 {
		return 0, false
	}
	pid, err = strconv.Atoi(fields[0])
	if err != nil {
		return 0, false
	}
	started, err := startTime(pid)
	return pid, err == nil && started == fields[1]
}

// startTime reads field 22 of /proc/PID/stat; a zombie counts as gone.
func startTime(pid int) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // after the command, which may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fields[19], nil
}

// killTimeout is generous: killed processes of a loaded machine take time to
// give their memory back.
const killTimeout = 30 * time.Second

// Kill ends a node at once, with everything that runs in it, and removes its
// cgroups. It is safe on a node that never started.
func Kill(n site.Node) error {
	if err := KillTree(n.CgroupPath(), n.PidFile()); err != nil {
		return fmt.Errorf("stopping node %s: %w", n.Name(), err)
	}
	return nil
}

// KillTree ends what the cgroup holds: inits go first and take their process
// namespace along; what is left was made by a torn start.
func KillTree(path string, pidFiles ...string) error {
	deadline := time.Now().Add(killTimeout)
	for {
		pids, err := cgroup.Processes(path)
		if err != nil {
			return err
		}
		alive := 0
		for _, pid := range pids {
			if _, err := startTime(pid); err != nil {
				continue
			}
			alive++
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("killing process %d: %w", pid, err)
			}
		}
		if alive == 0 && cgroup.Remove(path) == nil {
			break
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("%d processes of cgroup %s did not end within %s", alive, path, killTimeout), cgroup.Remove(path))
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, file := range pidFiles {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}
