package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Restore writes the topology and its files to a new folder, with the allocations next to them.
// An existing folder must be empty.
func (s *Snapshot) Restore(dir string) error {
	files := slices.Clone(s.Files)
	if s.Allocations != nil {
		f, err := s.allocations(AllocationsFile)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	return writeFolder(dir, files, 0o755)
}

// writeFolder creates a folder with files: all of them, or nothing.
func writeFolder(dir string, files []File, mode fs.FileMode) error {
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.IsDir() || os.Remove(dir) != nil: // an empty folder is replaced
		return fmt.Errorf("%s exists and is not an empty folder: choose another name", dir)
	}
	temporary, err := os.MkdirTemp(parent, ".c9s-new-")
	if err != nil {
		return err
	}
	err = fill(temporary, files)
	if err == nil {
		err = os.Chmod(temporary, mode)
	}
	if err == nil {
		err = os.Rename(temporary, dir)
	}
	if err != nil {
		os.RemoveAll(temporary)
	}
	return err
}

// fill writes files to an empty folder.
func fill(dir string, files []File) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		if err := legal(f.Name); err != nil {
			return err
		}
		if err := fillOne(root, f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	// A folder's own mode last, since it may not let anything be made in it.
	for _, f := range files {
		if f.Dir {
			if err := root.Chmod(filepath.FromSlash(f.Name), perm(f.Mode, true)); err != nil {
				return err
			}
		}
	}
	return nil
}

func fillOne(root *os.Root, f File) error {
	name := filepath.FromSlash(f.Name)
	if f.Dir {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(f.Name)), 0o755); err != nil {
		return err
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(f.Data)
	return errors.Join(err, out.Chmod(perm(f.Mode, false)), out.Close())
}

// readFolder reads a snapshot that is a folder.
func readFolder(dir string) ([]File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	b := newBudget()
	var out []File
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if !entry.Type().IsRegular() && !entry.IsDir() {
			return fmt.Errorf("%s: %w", name, errLink)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		f := File{Name: name, Mode: info.Mode() & fs.ModePerm, Dir: entry.IsDir()}
		size := info.Size()
		if f.Dir {
			size = 0
		}
		if err := b.take(name, size); err != nil {
			return err
		}
		if !f.Dir {
			switch f.Data, err = readFile(root, name, size); {
			case errors.Is(err, errLonger):
				return fmt.Errorf("%s grows while it is read", filepath.FromSlash(name))
			case err != nil:
				return err
			}
		}
		out = append(out, f)
		return nil
	})
	return out, err
}

// errLonger is the error of a file that is longer than it may be.
var errLonger = errors.New("the file is too long")

// readFile reads a file of at most limit bytes. The name has slashes.
func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	in, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errLonger
	}
	return data, err
}
