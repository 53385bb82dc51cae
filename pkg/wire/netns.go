//go:build linux

package wire

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// namespace is the network namespace in which the fabric was created. A socket belongs to
// the namespace of the thread that opens it, and goroutines change threads.
type namespace struct{ fd int }

func currentNamespace() (namespace, error) {
	fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return namespace{}, fmt.Errorf("network namespace: %w", err)
	}
	return namespace{fd}, nil
}

// enter binds the goroutine to a thread in the namespace. It is never unbound: the thread
// ends with the goroutine.
func (n namespace) enter() error {
	runtime.LockOSThread()
	var here, there unix.Stat_t
	if unix.Stat("/proc/thread-self/ns/net", &here) == nil && unix.Fstat(n.fd, &there) == nil && here.Ino == there.Ino && here.Dev == there.Dev {
		runtime.UnlockOSThread() // the whole process is there
		return nil
	}
	if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the network namespace: %w", err)
	}
	return nil
}

func (n namespace) close() { unix.Close(n.fd) }

// stopper ends loops that wait for a descriptor.
type stopper struct{ fd int }

func newStopper() (*stopper, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &stopper{fd}, nil
}

// stop ends all that wait, now and later.
func (s *stopper) stop() { unix.Write(s.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

func (s *stopper) close() { unix.Close(s.fd) }
