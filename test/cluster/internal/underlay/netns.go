package underlay

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

const (
	netnsDir     = "/run/netns"
	netnsDirMade = site.RunBase + "/netns-made" // there when the folder was not
)

// ensureNetns makes a named network namespace, as `ip netns add` does, unless a
// live one of that name is there.
func ensureNetns(name string) error {
	path := filepath.Join(netnsDir, name)
	if isNetns(path) {
		return nil
	}
	if err := removeNetns(name); err != nil {
		return err
	}
	if err := shareNetnsDir(); err != nil {
		return err
	}
	return onOwnThread(func() error {
		ns, err := netns.NewNamed(name)
		if err != nil {
			return fmt.Errorf("making network namespace %s: %w", name, err)
		}
		return ns.Close()
	})
}

// shareNetnsDir makes the folder a shared mount, as `ip netns add` does the first
// time it is called. Were that later, it would put a second mount over the
// namespaces that are there by then, and they could never be removed.
func shareNetnsDir() error {
	if err := os.Mkdir(netnsDir, 0o755); err == nil {
		if err := host.WriteFile(netnsDirMade, nil, 0o644); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	share := func() error { return unix.Mount("", netnsDir, "none", unix.MS_SHARED|unix.MS_REC, "") }
	err := share()
	if errors.Is(err, unix.EINVAL) { // no mount yet
		if err = unix.Mount(netnsDir, netnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = share()
		}
	}
	if err != nil {
		return fmt.Errorf("sharing %s: %w", netnsDir, err)
	}
	return nil
}

// leaveNetnsDir takes that mount away when no namespace is left in it, and the
// folder if it did not exist before.
func leaveNetnsDir() {
	entries, err := os.ReadDir(netnsDir)
	if err != nil || len(entries) > 0 {
		return
	}
	_ = unix.Unmount(netnsDir, 0) // EINVAL where it is none
	if _, err := os.Stat(netnsDirMade); err == nil {
		_ = os.Remove(netnsDir)
		_ = os.Remove(netnsDirMade)
	}
}

// isNetns reports whether a file is a mounted namespace and not what a torn start leaves.
func isNetns(path string) bool {
	var fsinfo unix.Statfs_t
	return unix.Statfs(path, &fsinfo) == nil && fsinfo.Type == unix.NSFS_MAGIC
}

func removeNetns(name string) error {
	path := filepath.Join(netnsDir, name)
	for isNetns(path) {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting network namespace %s: %w", name, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	leaveNetnsDir()
	return nil
}

// Listen listens within a node: at its addresses, and at those its routes call
// local.
func Listen(n site.Node, address string) (l net.Listener, err error) {
	err = in(n.Netns(), func() error {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l, err
}

// in runs f in a named network namespace.
func in(name string, f func() error) error {
	return onOwnThread(func() error {
		ns, err := netns.GetFromName(name)
		if err != nil {
			return fmt.Errorf("opening network namespace %s: %w", name, err)
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("entering network namespace %s: %w", name, err)
		}
		return f()
	})
}

// onOwnThread runs f on a thread that is thrown away after it, with whatever
// namespace f left it in.
func onOwnThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}
