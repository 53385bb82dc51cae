package execute

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// write puts a payload into the device's file system.
func (r *runner) write(w contract.Write) error {
	var payload io.Reader = strings.NewReader("")
	if w.Payload != "" {
		f, err := os.Open(filepath.Join(r.dir, w.Payload))
		if err != nil {
			return err
		}
		defer f.Close()
		payload = f
	}
	out, err := create(w.Path)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.Chmod(os.FileMode(w.Mode) & 0o777); err != nil {
		return err
	}
	if _, err := io.Copy(out, payload); err != nil {
		return err
	}
	return out.Close()
}

// create opens an empty file to be written. Users of the device may have put anything
// at its path, for example in /tmp. Their files are deleted, since they could redirect the file
// or change it before it is executed. Files of this user or of root are written in place: they
// may be mounts, which cannot be replaced, or links of the image.
func create(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 && trusted(info) {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			path = target
		}
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name := filepath.Base(path)
	info, err := root.Lstat(name)
	if err == nil && !(info.Mode().IsRegular() && trusted(info) && single(info)) {
		if err = root.Remove(name); errors.Is(err, unix.EBUSY) && info.Mode().IsRegular() {
			err = nil // a mount
		} else if err == nil {
			info, err = nil, fs.ErrNotExist
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	case err != nil:
		return nil, err
	}
	out, err := root.OpenFile(name, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if now, err := out.Stat(); err != nil || !os.SameFile(now, info) {
		out.Close()
		return nil, fmt.Errorf("%s was replaced meanwhile", path)
	}
	if err := out.Truncate(0); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// trusted reports whether a file is this user's own or root's.
func trusted(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int(st.Uid) == os.Geteuid() || st.Uid == 0)
}

// single reports whether a file has one name only.
func single(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1
}
