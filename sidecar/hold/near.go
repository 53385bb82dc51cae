package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// detach opens the worker's folder and unmounts it, so that only those who are given the
// descriptor reach it. It returns nil if nothing is mounted there.
func detach(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		f.Close()
		return nil, fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := f.Chmod(0o700); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
