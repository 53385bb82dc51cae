package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Lock takes an exclusive lock on a file, made with its folder when missing.
// The kernel frees it when the process ends, however it ends. Its holder may
// remove the file.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	for {
		f, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if f != nil {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s, which another process holds: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tryLock returns no file while another process has the lock.
func tryLock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // its folder was removed just now
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil || !isStill(path, f) {
		f.Close()
		return nil, nil
	}
	return f, nil
}

// isStill reports whether a file that is open was not removed in the meantime.
func isStill(path string, f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	present, err := os.Stat(path)
	return err == nil && os.SameFile(mine, present)
}
