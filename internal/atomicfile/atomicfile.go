// Package atomicfile replaces files in one step: a reader sees the old file or the new
// one, even after a crash, and never half of one.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
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
	temporary, err := prepare(root, mode, fill)
	if err != nil {
		return err
	}
	return place(root, temporary, filepath.Base(file))
}

// prepare fills a temporary file.
func prepare(root *os.Root, mode fs.FileMode, fill func(io.Writer) error) (temporary string, err error) {
	temporary = ".c9s-new-" + rand.Text()
	out, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	if err := errors.Join(fill(out), out.Chmod(mode), out.Close()); err != nil {
		_ = root.Remove(temporary)
		return "", err
	}
	return temporary, nil
}

// place gives a temporary file its name, or removes it.
func place(root *os.Root, temporary, name string) error {
	if info, err := root.Lstat(name); err == nil && info.IsDir() {
		_ = root.Remove(name)
	}
	err := root.Rename(temporary, name)
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}

// WriteAll replaces files of a folder by their names. It writes all before it replaces the
// first one, so a full disk leaves the old files, and no folder that it created.
func WriteAll(dir string, files map[string][]byte, mode, dirMode fs.FileMode) (err error) {
	_, missing := os.Lstat(dir)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	temporaries := map[string]string{}
	defer func() {
		if err != nil {
			for _, t := range temporaries {
				_ = root.Remove(t)
			}
			if missing != nil {
				_ = os.Remove(dir)
			}
		}
	}()
	for name, data := range files {
		if info, statErr := root.Lstat(name); statErr == nil && info.IsDir() {
			return fmt.Errorf("%s is a folder", filepath.Join(dir, name))
		}
		temporary, err := prepare(root, mode, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return err
		}
		temporaries[name] = temporary
	}
	for name, temporary := range temporaries {
		if err := place(root, temporary, name); err != nil {
			return err
		}
	}
	return nil
}
