package podnet

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// poke is a wake-up that is never lost and never waits.
type poke chan struct{}

func newPoke() poke { return make(poke, 1) }

func (p poke) poke() {
	select {
	case p <- struct{}{}:
	default:
	}
}

// watchFiles calls changed after something in one of the folders or files
// changed. A ConfigMap's folder changes by a symbolic link that is replaced.
func watchFiles(paths []string, changed func()) (stop func(), err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	for _, p := range paths {
		// The slow check finds what does not exist yet.
		_, err := unix.InotifyAddWatch(fd, p, unix.IN_MOVED_TO|unix.IN_CREATE|unix.IN_CLOSE_WRITE|unix.IN_DELETE)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			unix.Close(fd)
			return nil, fmt.Errorf("watch %s: %w", p, err)
		}
	}
	f := os.NewFile(uintptr(fd), "inotify")
	go func() {
		buf := make([]byte, 4096)
		for {
			if _, err := f.Read(buf); err != nil {
				return
			}
			changed()
		}
	}()
	return func() { f.Close() }, nil
}

// watchLinks calls changed after an interface of the namespace changed. All else is
// looked at now and then.
func watchLinks(ns *nspace.Namespace, changed func()) (stop func(), err error) {
	var s *nl.NetlinkSocket
	err = ns.Do(func() error {
		s, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("watch interfaces: %w", err)
	}
	go func() {
		for {
			_, _, err := s.Receive()
			if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
				return
			}
			changed()
		}
	}()
	return s.Close, nil
}
