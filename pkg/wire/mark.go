//go:build linux

package wire

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// MarkSocket is a net.Dialer's Control that sets SO_MARK on its sockets; nil for no mark.
func MarkSocket(mark uint32) func(network, address string, c syscall.RawConn) error {
	if mark == 0 {
		return nil
	}
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if ctl := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(mark))
		}); ctl != nil {
			return ctl
		}
		if err != nil {
			return fmt.Errorf("mark a socket: %w", err)
		}
		return nil
	}
}
