package podnet

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// sockets listens where the Pod's containers ask: c9s-sidecar status in the sidecar's
// own folder, and the helper of each device's container in that container's. The
// device's network namespace is not the sidecar's, so there is no localhost between
// them.
func (s *sidecar) sockets() (all []net.Listener, err error) {
	one, err := listenSocket(s.cfg.state(contract.SocketFile), 0o600)
	if err != nil {
		return nil, err
	}
	all = append(all, one)
	entries, err := os.ReadDir(filepath.Join(s.cfg.StateDir, contract.ExecDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return all, err
	}
	for _, e := range entries {
		l, err := listenSocket(filepath.Join(s.cfg.StateDir, contract.ExecDir, e.Name(), contract.SocketFile), 0o666)
		if err != nil {
			return all, err
		}
		all = append(all, l)
	}
	return all, nil
}

// listenSocket replaces the socket of an earlier process.
func listenSocket(path string, mode fs.FileMode) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("serve on %s: %w", path, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // it may be the next one's by then
	return l, os.Chmod(path, mode)
}
