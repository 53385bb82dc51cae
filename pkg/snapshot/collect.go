package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/topology"
)

// Collect fills in the topology and all that it reads in its folder. The topology must have been
// compiled, and extra are further files or folders of the folder. What is not in the folder, and
// symbolic links, are only named in Missing.
func (s *Snapshot) Collect(src *topology.Source, extra ...string) error {
	switch {
	case len(src.Parts) > 0:
		return fmt.Errorf("%s is written as documents: use 'c9s convert' to make it a topology file", src.Name)
	case src.Dir == "" || src.Reach.Limited() || src.Reach.Folder() != src.Dir:
		return fmt.Errorf("%s is not a topology file on this machine: clone or download it first", src.Name)
	}
	s.Topology = src.Base
	s.Missing = src.Reach.Outside()
	root, err := os.OpenRoot(src.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	c := &collector{dir: src.Dir, root: root, budget: newBudget()}
	if err := c.add(File{Name: src.Base, Mode: 0o644, Data: src.Data}); err != nil {
		return err
	}
	for _, name := range src.Reach.Read() {
		if err := c.read(name); err != nil {
			return err
		}
	}
	for _, name := range extra {
		if err := c.tree(name); err != nil {
			return err
		}
	}
	s.Files = c.files
	s.Missing = append(s.Missing, c.links...)
	return nil
}

// collector reads files of a folder, and none through a link: what that leads to may not be meant
// for others.
type collector struct {
	dir    string
	root   *os.Root
	budget *budget
	files  []File
	links  []string
}

func (c *collector) add(f File) error {
	if c.budget.seen[f.Name] {
		return nil
	}
	if err := c.budget.take(f.Name, int64(len(f.Data))); err != nil {
		return err
	}
	c.files = append(c.files, f)
	return nil
}

// read adds one file or folder, without what is in the folder.
func (c *collector) read(name string) error {
	if name == "." || c.budget.seen[name] {
		return nil
	}
	linked, err := c.linked(name)
	if err != nil {
		return err
	}
	if linked {
		if !slices.Contains(c.links, name) {
			c.links = append(c.links, name)
		}
		return nil
	}
	info, err := c.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	f := File{Name: name, Mode: info.Mode() & fs.ModePerm, Dir: info.IsDir()}
	switch {
	case f.Dir:
		return errors.Join(c.noteLinks(name), c.add(f))
	case !info.Mode().IsRegular():
		c.links = append(c.links, name)
		return nil
	}
	switch f.Data, err = readFile(c.root, name, maxBytes); {
	case errors.Is(err, errLonger):
		return fmt.Errorf("%s has more than %d MiB", name, maxBytes>>20)
	case err != nil:
		return err
	}
	return c.add(f)
}

// linked reports whether a name is a symbolic link, or has one on its way.
func (c *collector) linked(name string) (bool, error) {
	at := ""
	for _, part := range strings.Split(name, "/") {
		at = path.Join(at, part)
		info, err := c.root.Lstat(filepath.FromSlash(at))
		if err != nil {
			return false, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return true, nil
		}
	}
	return false, nil
}

// noteLinks notes the symbolic links in a folder: they stay links in a container.
func (c *collector) noteLinks(name string) error {
	entries, err := os.ReadDir(filepath.Join(c.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if link := path.Join(name, e.Name()); e.Type()&fs.ModeSymlink != 0 && !slices.Contains(c.links, link) {
			c.links = append(c.links, link)
		}
	}
	return nil
}

// tree adds a file, or a folder with all that is in it.
func (c *collector) tree(name string) error {
	return filepath.WalkDir(filepath.Join(c.dir, filepath.FromSlash(name)), func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(c.dir, full)
		if err != nil {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			return nil // its folder notes it
		}
		return c.read(filepath.ToSlash(rel))
	})
}
