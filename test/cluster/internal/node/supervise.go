package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// restartDelay is the pause before an ended service is started again.
const restartDelay = time.Second

// A supervisor starts services and reaps every process of the node: those whose
// parents are gone become its children.
type supervisor struct {
	spec Spec

	mu      sync.Mutex
	waiting map[int]chan<- string // by process id, told how the process ended
	started *sync.Cond            // a process was started
}

func newSupervisor(spec Spec) *supervisor {
	s := &supervisor{spec: spec, waiting: map[int]chan<- string{}}
	s.started = sync.NewCond(&s.mu)
	return s
}

func (s *supervisor) run() {
	for _, service := range s.spec.Services {
		go s.keep(service)
	}
	s.reap()
}

// keep starts a service, and again whenever it ends.
func (s *supervisor) keep(service Service) {
	for {
		waitFor(service.After)
		how, err := s.start(service)
		if err != nil {
			fmt.Printf("%s: %v\n", service.Name, err)
		} else {
			fmt.Printf("%s ended: %s\n", service.Name, <-how)
		}
		time.Sleep(restartDelay)
	}
}

func (s *supervisor) start(service Service) (<-chan string, error) {
	program, err := s.find(service.Args[0])
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(s.spec.Logs, service.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()

	how := make(chan string, 1)
	s.mu.Lock() // so that a process that ends at once is known when it is reaped
	defer s.mu.Unlock()
	pid, err := syscall.ForkExec(program, service.Args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   append([]string{"HOME=/root", "PATH=" + s.spec.Path}, s.spec.Env...),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	s.waiting[pid] = how
	s.started.Signal()
	return how, nil
}

// find looks a program up in the node's $PATH.
func (s *supervisor) find(program string) (string, error) {
	if program == "self" {
		return "/proc/1/exe", nil
	}
	for _, dir := range strings.Split(s.spec.Path, ":") {
		path := filepath.Join(dir, program)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w in %s", program, exec.ErrNotFound, s.spec.Path)
}

func (s *supervisor) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		s.mu.Lock()
		switch {
		case errors.Is(err, unix.ECHILD):
			for len(s.waiting) == 0 {
				s.started.Wait()
			}
		case err == nil:
			if how, mine := s.waiting[pid]; mine {
				how <- describe(status)
				delete(s.waiting, pid)
			}
		}
		s.mu.Unlock()
	}
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}

// waitFor returns when something accepts connections there.
func waitFor(where string) {
	network, address, ok := strings.Cut(where, ":")
	for ok {
		conn, err := net.DialTimeout(network, address, time.Second)
		if err == nil {
			conn.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
