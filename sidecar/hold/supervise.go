// Package hold keeps the sidecar's network namespace alive. A namespace exists as long
// as a process holds it, and takes the Pod's cluster interface along when it ends. Two
// hold it: the supervisor, which is the first process of the sidecar's container and
// does little else, and the helper in the device's container. Either may end at any
// time.
package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/mgmt"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// deviceFD and nearFD are the descriptors at which the child finds the Pod's namespace and,
// if its arguments have NearFlag, the worker's folder.
const (
	deviceFD = 3
	nearFD   = 4
)

// NearFlag is the argument of a child with the worker's folder.
const NearFlag = "--near"

// Near returns the worker's folder to a child with NearFlag.
func Near() *os.File {
	unix.CloseOnExec(nearFD)
	return os.NewFile(nearFD, "near")
}

// Device returns the Pod's namespace to the child.
func Device() (*nspace.Namespace, error) {
	unix.CloseOnExec(deviceFD)
	return nspace.Open(os.NewFile(deviceFD, "device"))
}

// Options say what is supervised.
type Options struct {
	// PodIPs are the Pod's addresses, by which its cluster interface is known.
	PodIPs []netip.Addr
	// StateDir is shared with the devices' containers, as far as its folder
	// contract.ExecDir goes; Dir is a folder of the sidecar's own there.
	StateDir, Dir string
	// LayOut lays out the files of the devices. It runs once in the Pod's sandbox: after a
	// restart of the sidecar the files are the devices'.
	LayOut func() error
	// Command is the child's.
	Command []string
	// Near is where the worker's folder is mounted, if it is.
	Near string
	Log  *slog.Logger
}

// ErrLost reports that the sidecar's namespace has ended, and the Pod's cluster
// interface with it: no process in the Pod can make another, so the Pod must be
// replaced.
var ErrLost = errors.New("the network namespace of the sidecar is lost, and the Pod's cluster interface with it: the Pod must be replaced")

// supervisor holds the namespace.
type supervisor struct {
	Options
	state state

	// near is the worker's folder, nil without one.
	near *os.File

	mu      sync.Mutex
	own     *nspace.Namespace
	offered chan *nspace.Namespace
}

// Supervise holds the sidecar's namespace and runs the sidecar in it, again whenever it
// ends, until ctx is done. The caller is in the Pod's namespace.
func Supervise(ctx context.Context, o Options) error {
	s := &supervisor{Options: o, offered: make(chan *nspace.Namespace)}
	if s.Log == nil {
		s.Log = slog.Default()
	}
	pod, err := nspace.Current()
	if err != nil {
		return err
	}
	if s.near, err = detach(s.Near); err != nil {
		s.Log.Warn("links to Pods of the same worker are not joined in its kernel", "error", err)
	}
	if err := s.load(pod); err != nil {
		return err
	}
	if err := s.layOut(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.listen(ctx); err != nil {
		return err
	}
	if err := s.find(ctx, pod); err != nil {
		return err
	}
	// An earlier supervisor gave up too soon: the helper had no time.
	_ = os.Remove(filepath.Join(s.StateDir, evictFile))
	for wait := firstWait; ctx.Err() == nil; {
		began := time.Now()
		err := s.run(ctx, pod)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > longestWait {
			wait = firstWait
		}
		s.Log.Error("the sidecar ended and is started again", "error", err, "in", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, longestWait)
	}
	return nil
}

// A child that ends is restarted after firstWait. If it ends repeatedly, the wait grows up to
// longestWait.
const (
	firstWait   = 20 * time.Millisecond
	longestWait = 5 * time.Second
)

// offerPatience is how long the supervisor waits for a helper that has the namespace.
const offerPatience = 5 * time.Second

// find makes the namespace, or gets it from a helper.
func (s *supervisor) find(ctx context.Context, pod *nspace.Namespace) error {
	inPod, err := s.interfaceInPod(pod)
	if err != nil {
		return err
	}
	if inPod {
		own, err := nspace.New()
		if err != nil {
			return err
		}
		if s.state.Own, err = identity(own); err != nil {
			return err
		}
		s.hold(own)
		return s.save()
	}
	if s.state.Own == 0 {
		return ErrLost
	}
	select {
	case own := <-s.offered:
		s.hold(own)
		return nil
	case <-time.After(offerPatience):
		return ErrLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// identity is the namespace's cookie. Kernels before 5.14 have none; there it is the
// inode, which no other namespace has as long as somebody holds this one.
func identity(n *nspace.Namespace) (uint64, error) {
	if cookie, err := n.Cookie(); err == nil {
		return cookie, nil
	}
	return n.Inode()
}

func (s *supervisor) interfaceInPod(pod *nspace.Namespace) (found bool, err error) {
	err = pod.Do(func() error {
		nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer nl.Close()
		l, err := mgmt.InPod(nl, s.PodIPs)
		found = l != nil
		return err
	})
	return found, err
}

func (s *supervisor) hold(own *nspace.Namespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own = own
}

func (s *supervisor) held() *nspace.Namespace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own
}

// run runs the child in the namespace until it ends. The thread is the child's parent:
// with it the child ends too.
func (s *supervisor) run(ctx context.Context, pod *nspace.Namespace) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is in another namespace
		if err := unix.Setns(s.held().FD(), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter the sidecar's network namespace: %w", err)
			return
		}
		cmd := exec.Command(s.Command[0], s.Command[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.ExtraFiles = []*os.File{pod.File()}
		if s.near != nil {
			cmd.Args, cmd.ExtraFiles = append(cmd.Args, NearFlag), append(cmd.ExtraFiles, s.near)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
		if err := cmd.Start(); err != nil {
			done <- err
			return
		}
		watched, end := context.WithCancel(context.Background())
		defer end()
		go watch(watched, cmd.Process, filepath.Join(s.Dir, contract.SocketFile), s.Log)
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(unix.SIGTERM) })
		defer stop()
		done <- cmd.Wait()
	}()
	return <-done
}

// listen gives the namespace to the helpers in the Pod's containers, and takes it from
// them.
func (s *supervisor) listen(ctx context.Context) error {
	dir := filepath.Join(s.StateDir, contract.ExecDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) { // nothing was laid out: there is no device
		if err := os.MkdirAll(filepath.Join(dir, contract.IdleContainer), 0o755); err != nil {
			return err
		}
		entries, err = os.ReadDir(dir)
	}
	if err != nil {
		return err
	}
	// The other processes of the sidecar's container get it in a folder that no device sees.
	if err := s.listenAt(ctx, filepath.Join(s.Dir, contract.HoldSocket), 0o600); err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.listenAt(ctx, filepath.Join(dir, e.Name(), contract.HoldSocket), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (s *supervisor) listenAt(ctx context.Context, path string, mode fs.FileMode) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, mode); err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go s.accept(l)
	return nil
}

// maxHelpers bounds the connections of one container, where anybody may connect.
const maxHelpers = 8

func (s *supervisor) accept(l *net.UnixListener) {
	slots := make(chan struct{}, maxHelpers)
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		select {
		case slots <- struct{}{}:
			go func() {
				defer func() { c.Close(); <-slots }()
				s.serve(c)
			}()
		default:
			c.Close()
		}
	}
}

// helloPatience is how long a helper may take to say what it has.
const helloPatience = 10 * time.Second

// serve exchanges the namespace with a helper and stays until that ends. A supervisor
// that looks for the namespace accepts only the one that it knows.
func (s *supervisor) serve(c *net.UnixConn) {
	_ = c.SetReadDeadline(time.Now().Add(helloPatience))
	got, err := receive(c)
	if err != nil {
		return
	}
	if got != nil {
		s.offer(got)
	}
	own := s.held()
	if own == nil || send(c, own) != nil {
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	if more, _ := receive(c); more != nil {
		more.Close()
	}
}

// offer takes a namespace if it is the one looked for.
func (s *supervisor) offer(got *nspace.Namespace) {
	id, err := identity(got)
	if s.held() == nil && err == nil && id == s.state.Own {
		select {
		case s.offered <- got:
			return
		case <-time.After(offerPatience):
		}
	}
	got.Close()
}
