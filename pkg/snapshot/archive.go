package snapshot

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/c9s-lab/c9s/internal/atomicfile"
)

// IsArchive reports whether a snapshot of this name is one compressed file, and not a folder.
func IsArchive(name string) bool { return Base(name) != filepath.Base(name) }

// Base returns the name of a snapshot without its folder and extension.
func Base(name string) string {
	base := filepath.Base(name)
	for _, suffix := range []string{".tar.gz", ".tgz"} {
		if rest, ok := strings.CutSuffix(base, suffix); ok && rest != "" {
			return rest
		}
	}
	return base
}

// Write writes a snapshot: an archive for a name that ends in .tar.gz or .tgz, else a folder. It
// does not replace anything. Only the user can read it, since configurations hold passwords.
func (s *Snapshot) Write(name string) error {
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists: choose another name", name)
	}
	files, err := s.contents()
	if err != nil {
		return err
	}
	if !IsArchive(name) {
		return writeFolder(name, files, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return atomicfile.Copy(name, 0o600, func(w io.Writer) error { return s.pack(w, Base(name), files) })
}

// pack writes the files in one folder as a compressed tar archive.
func (s *Snapshot) pack(w io.Writer, folder string, files []File) error {
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + f.Name, Mode: int64(perm(f.Mode, f.Dir)), Size: int64(len(f.Data)), ModTime: s.Created}
		if f.Dir {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(f.Data); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return zip.Close()
}

// Read reads a snapshot from a folder or an archive. It trusts neither: names stay in the
// folder, links are rejected, and the number and size of files are limited.
func Read(name string) (*Snapshot, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	var files []File
	if info.IsDir() {
		files, err = readFolder(name)
	} else {
		files, err = readArchive(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s, err := parse(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func readArchive(name string) ([]File, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("it is not a compressed archive: %w", err)
	}
	// Headers take up to a kilobyte, and are not counted by the sizes of files.
	limited := io.LimitReader(zip, maxBytes+int64(maxFiles)*4096)
	in := tar.NewReader(limited)
	b := newBudget()
	var out []File
	top := ""
	for {
		h, err := in.Next()
		if err == io.EOF { // the checksum comes last
			_, err := io.Copy(io.Discard, limited)
			return out, err
		}
		if err != nil {
			return nil, err
		}
		f := File{Name: strings.TrimSuffix(h.Name, "/"), Mode: fs.FileMode(h.Mode) & fs.ModePerm, Dir: h.Typeflag == tar.TypeDir}
		first, below, inside := strings.Cut(f.Name, "/")
		switch {
		case h.Typeflag != tar.TypeReg && !f.Dir:
			return nil, fmt.Errorf("%q: %w", h.Name, errLink)
		case top != "" && first != top:
			return nil, fmt.Errorf("it has several folders: %q and %q", top, first)
		case !inside && !f.Dir:
			return nil, fmt.Errorf("%q is not in the folder of the snapshot", h.Name)
		case !inside:
			top = first
			continue
		}
		top, f.Name = first, below
		if err := b.take(f.Name, h.Size); err != nil {
			return nil, err
		}
		if !f.Dir {
			if f.Data, err = io.ReadAll(io.LimitReader(in, h.Size)); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		out = append(out, f)
	}
}
