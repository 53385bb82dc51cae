package images

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"
)

// A tarLayer is an uncompressed layer in a file: between this machine and itself
// compression costs time only.
type tarLayer struct {
	path string
	hash v1.Hash
	size int64
}

func newTarLayer(path string) (tarLayer, error) {
	f, err := os.Open(path)
	if err != nil {
		return tarLayer{}, err
	}
	defer f.Close()
	digest := sha256.New()
	size, err := io.Copy(digest, f)
	if err != nil {
		return tarLayer{}, err
	}
	return tarLayer{path: path, hash: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(digest.Sum(nil))}, size: size}, nil
}

func (l tarLayer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l tarLayer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l tarLayer) Compressed() (io.ReadCloser, error)   { return os.Open(l.path) }
func (l tarLayer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }
func (l tarLayer) Size() (int64, error)                 { return l.size, nil }
func (l tarLayer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }

// A file is one entry of a layer that is made from nothing.
type file struct {
	mode fs.FileMode
	text []byte
	link string // of a symbolic link
}

// writeFiles writes a layer of files, with the folders they need.
func writeFiles(path string, files map[string]file) error {
	return writeTar(path, func(w *tar.Writer) error {
		names := make([]string, 0, len(files))
		for name := range files {
			names = append(names, name)
		}
		sort.Strings(names)
		made := map[string]bool{}
		for _, name := range names {
			if err := addFolders(w, filepath.Dir(name), made); err != nil {
				return err
			}
			f := files[name]
			header := &tar.Header{Name: name, Mode: int64(f.mode.Perm()), Size: int64(len(f.text)), Typeflag: tar.TypeReg}
			if f.link != "" {
				header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
			}
			if err := w.WriteHeader(header); err != nil {
				return err
			}
			if _, err := w.Write(f.text); err != nil {
				return err
			}
		}
		return nil
	})
}

func addFolders(w *tar.Writer, dir string, made map[string]bool) error {
	if dir == "." || made[dir] {
		return nil
	}
	if err := addFolders(w, filepath.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return w.WriteHeader(&tar.Header{Name: dir + "/", Mode: 0o755, Typeflag: tar.TypeDir})
}

// writeTree writes a layer of a folder. The folder may be the upper one of an
// overlay: what was deleted below it, there a device 0/0, becomes a whiteout.
func writeTree(path, root string) error {
	return writeTar(path, func(w *tar.Writer) error {
		links := map[uint64]string{} // the first name of each file with several
		return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || name == root {
				return err
			}
			relative, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			return addEntry(w, name, relative, info, links)
		})
	})
}

func addEntry(w *tar.Writer, name, relative string, info fs.FileInfo, links map[uint64]string) error {
	stat := info.Sys().(*syscall.Stat_t)
	if info.Mode()&fs.ModeSocket != 0 {
		return nil
	}
	if info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0 {
		return w.WriteHeader(&tar.Header{Name: filepath.Join(filepath.Dir(relative), ".wh."+filepath.Base(relative)), Typeflag: tar.TypeReg})
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		var err error
		if target, err = os.Readlink(name); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	header.Name = relative
	header.Uname, header.Gname = "", ""
	if info.IsDir() {
		header.Name += "/"
	}
	if caps, err := getxattr(name, "security.capability"); err == nil {
		header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": caps}
	}
	if first, known := links[stat.Ino]; known && info.Mode().IsRegular() {
		header.Typeflag, header.Linkname, header.Size = tar.TypeLink, first, 0
		return w.WriteHeader(header)
	}
	if stat.Nlink > 1 {
		links[stat.Ino] = relative
	}
	if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

func getxattr(path, name string) (string, error) {
	buffer := make([]byte, 256)
	n, err := unix.Lgetxattr(path, name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

func writeTar(path string, fill func(*tar.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := tar.NewWriter(f)
	if err := fill(w); err != nil {
		return fmt.Errorf("writing layer %s: %w", strings.TrimSuffix(filepath.Base(path), ".tar"), err)
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
