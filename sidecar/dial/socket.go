package dial

import (
	"context"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/tunnel"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// connect makes a socket in a network namespace and connects it. A socket stays in the
// namespace that it is made in, so only that needs a thread there.
func (d *Dialer) connect(ctx context.Context, space *nspace.Namespace, network string, source netip.Addr, to netip.AddrPort) (net.Conn, error) {
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	if to.Addr().Is6() {
		family = unix.AF_INET6
	}
	if network == tunnel.UDP {
		kind = unix.SOCK_DGRAM
	}
	fd := -1
	open := func() (err error) {
		fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	}
	var err error
	if space == d.device && d.here {
		err = open()
	} else {
		err = space.Do(open)
	}
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if source.IsValid() {
		if err := unix.Bind(fd, sockaddr(netip.AddrPortFrom(source, 0))); err != nil {
			unix.Close(fd)
			return nil, os.NewSyscallError("bind", err)
		}
	}
	err = unix.Connect(fd, sockaddr(to))
	f := os.NewFile(uintptr(fd), to.String())
	defer f.Close() // FileConn makes a copy
	if err == unix.EINPROGRESS {
		err = connected(ctx, f)
	}
	if err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(f)
}

// connected waits until a socket is connected.
func connected(ctx context.Context, f *os.File) error {
	defer context.AfterFunc(ctx, func() { _ = f.SetWriteDeadline(time.Unix(1, 0)) })()
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		number, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		switch {
		case err != nil:
			failed = err
			return true
		case number != 0:
			failed = unix.Errno(number)
			return true
		}
		_, err = unix.Getpeername(int(fd)) // not before it is connected
		return err == nil
	})
	if err != nil {
		return err
	}
	return failed
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
