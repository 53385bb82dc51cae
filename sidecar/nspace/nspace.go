// Package nspace holds network namespaces by file descriptor and runs code in them.
package nspace

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace. It exists at least until Close.
type Namespace struct {
	file *os.File
	jobs chan job
}

type job struct {
	do   func() error
	done chan<- error
}

// Current returns the calling thread's namespace.
func Current() (*Namespace, error) {
	f, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("open the network namespace: %w", err)
	}
	return Open(f)
}

// New makes a namespace. It ends with its last descriptor.
func New() (n *Namespace, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("make a network namespace: %w", err)
			return
		}
		n, err = Current()
	}()
	<-done
	return n, err
}

// Open takes over a descriptor. What is no network namespace is refused, so that
// the descriptor may come from a stranger.
func Open(f *os.File) (*Namespace, error) {
	if !isNetwork(int(f.Fd())) {
		f.Close()
		return nil, errors.New("the descriptor is not that of a network namespace")
	}
	n := &Namespace{file: f, jobs: make(chan job)}
	ready := make(chan error)
	go n.work(ready)
	if err := <-ready; err != nil {
		f.Close()
		return nil, err
	}
	return n, nil
}

func isNetwork(fd int) bool {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Type != unix.NSFS_MAGIC {
		return false
	}
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	return err == nil && kind == unix.CLONE_NEWNET
}

// work runs jobs on one thread in the namespace.
func (n *Namespace) work(ready chan<- error) {
	runtime.LockOSThread() // never unlocked
	if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
		ready <- fmt.Errorf("enter the network namespace: %w", err)
		return
	}
	ready <- nil
	for j := range n.jobs {
		j.done <- j.do()
	}
}

// Do runs f in the namespace: sockets that it opens and settings that it writes
// below /proc/sys/net are the namespace's. Goroutines that it starts are not in
// there. f must not call Do.
func (n *Namespace) Do(f func() error) error {
	done := make(chan error, 1)
	n.jobs <- job{f, done}
	return <-done
}

// File is the descriptor, which stays the Namespace's.
func (n *Namespace) File() *os.File { return n.file }

// FD is the descriptor's number.
func (n *Namespace) FD() int { return int(n.file.Fd()) }

// Cookie identifies the namespace: no other has the same until the machine boots
// again (SO_NETNS_COOKIE, Linux 5.14).
func (n *Namespace) Cookie() (cookie uint64, err error) {
	err = n.Do(func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cookie of the network namespace: %w", err)
	}
	return cookie, nil
}

// Inode is the namespace's inode, which another may have later.
func (n *Namespace) Inode() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(n.FD(), &st); err != nil {
		return 0, fmt.Errorf("inode of the network namespace: %w", err)
	}
	return st.Ino, nil
}

// Here reports whether the calling thread is in the namespace. All threads of a process that is in
// it are, but those that run jobs in others.
func (n *Namespace) Here() bool {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return false
	}
	own, err := n.Inode()
	return err == nil && own == st.Ino
}

// Close ends the thread and gives the descriptor back.
func (n *Namespace) Close() error {
	close(n.jobs)
	return n.file.Close()
}
