// Package atomicfile replaces files in one step: a reader sees the old file or the new
// one, even after a crash, and never half of one.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file with data, and creates its folder with the mode dirMode if it is
// missing. Several processes may write the same file.
func Write(file string, data []byte, mode, dirMode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), dirMode); err != nil {
		return err
	}
	return Copy(file, mode, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Copy replaces a file in an existing folder with what fill writes. Users of the device
// may be able to write to the folder: the temporary file has a name that they cannot
// foresee, and links are not followed. An empty folder in the file's place is removed.
func Copy(file string, mode fs.FileMode, fill func(io.Writer) error) error {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer root.Close()
	name := filepath.Base(file)
	temporary := ".c9s-new-" + rand.Text()
	out, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = errors.Join(fill(out), out.Chmod(mode), out.Close())
	if err == nil {
		if info, statErr := root.Lstat(name); statErr == nil && info.IsDir() {
			_ = root.Remove(name)
		}
		err = root.Rename(temporary, name)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}
