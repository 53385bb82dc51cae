package hold

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// A message is one byte, with or without a descriptor.
var message = []byte{'c'}

// send passes a namespace, or none.
func send(c *net.UnixConn, n *nspace.Namespace) error {
	var rights []byte
	if n != nil {
		rights = unix.UnixRights(n.FD())
	}
	_, _, err := c.WriteMsgUnix(message, rights, nil)
	return err
}

// receive takes a namespace, nil for none.
func receive(c *net.UnixConn) (*nspace.Namespace, error) {
	var data [1]byte
	rights := make([]byte, unix.CmsgSpace(4))
	n, oob, _, _, err := c.ReadMsgUnix(data[:], rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errors.New("the other side has closed")
	}
	messages, err := unix.ParseSocketControlMessage(rights[:oob])
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("%d descriptors: %w", len(fds), err)
	}
	unix.CloseOnExec(fds[0])
	return nspace.Open(os.NewFile(uintptr(fds[0]), "netns"))
}
