// Package transfer copies files and folders as tar streams, in the manner of docker cp.
package transfer

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// PackOptions say what a stream contains.
type PackOptions struct {
	// Name is what the file or folder is called in the stream.
	Name string
	// Follow copies what the path leads to if it is a symbolic link.
	Follow bool
	// Skipped is called for what has no place in a tar stream, such as sockets.
	Skipped func(path string)
}

// Pack writes a file or folder as a tar stream.
func Pack(w io.Writer, from string, o PackOptions) error {
	if o.Follow {
		real, err := filepath.EvalSymlinks(from)
		if err != nil {
			return err
		}
		from = real
	}
	out := tar.NewWriter(w)
	err := filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return packOne(out, file, path.Join(o.Name, filepath.ToSlash(below)), info, o.Skipped)
	})
	if err != nil {
		return err
	}
	return out.Close()
}

// packOne writes one file, folder or symbolic link.
func packOne(out *tar.Writer, file, name string, info fs.FileInfo, skipped func(string)) error {
	link := ""
	switch info.Mode().Type() {
	case 0, fs.ModeDir:
	case fs.ModeSymlink:
		var err error
		if link, err = os.Readlink(file); err != nil {
			return err
		}
	default:
		if skipped != nil {
			skipped(file)
		}
		return nil
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = name
	header.Format = tar.FormatPAX
	if info.IsDir() {
		header.Name += "/"
	}
	if !info.Mode().IsRegular() {
		return out.WriteHeader(header)
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	// A file that changes meanwhile, such as a log, still has the length of its header.
	n, err := io.Copy(out, io.LimitReader(in, header.Size))
	if err == nil && n < header.Size {
		_, err = io.CopyN(out, zeros{}, header.Size-n)
	}
	return err
}

// zeros is an endless file of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// UnpackOptions say how a stream becomes files.
type UnpackOptions struct {
	// Name is what the source is called: a copy in an existing folder has this name, whatever
	// the stream calls it. "" takes the stream's word.
	Name string
	// Inside puts what is in the stream's folder, and not the folder itself, into an existing
	// destination: docker's "/." at the end of the source.
	Inside bool
	// Whole puts everything that is in the stream into the destination, which is a folder.
	Whole bool
	// Owners keeps the owners of the stream.
	Owners bool
	// Modes are the mode bits that are kept.
	Modes fs.FileMode
}

// Result counts what was copied.
type Result struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Unpack writes the files of a tar stream. If the destination is a folder, they land in it; if
// it does not exist, it becomes the copy. Nothing is written outside the destination, whatever
// the stream says.
func Unpack(r io.Reader, to string, o UnpackOptions) (Result, error) {
	in := tar.NewReader(r)
	first, err := in.Next()
	if err == io.EOF {
		return Result{}, errors.New("the stream is empty")
	}
	if err != nil {
		return Result{}, err
	}
	u := &unpacker{in: in, o: o}
	if err := u.place(to, first); err != nil {
		return Result{}, err
	}
	defer func() { u.root.Close() }()
	folder := first.Typeflag == tar.TypeDir
	for header, n := first, 0; err == nil; n++ {
		if n > 0 && !folder && !o.Whole {
			return u.done, errors.New("the source is no folder, and the stream has several files")
		}
		if err := u.one(header); err != nil {
			return u.done, fmt.Errorf("%s: %w", header.Name, err)
		}
		if n == 0 && folder && !o.Whole && u.name != "." {
			if err := u.enter(); err != nil {
				return u.done, err
			}
			defer u.outer.Close()
		}
		header, err = in.Next()
	}
	if err != io.EOF {
		return u.done, err
	}
	return u.done, u.finish()
}

// enter makes the folder that is copied the root of all that follows, so that no link of the
// stream leads to what is next to it.
func (u *unpacker) enter() error {
	inner, err := u.root.OpenRoot(u.name)
	if err != nil {
		return err
	}
	u.outer, u.root, u.top, u.folders, u.name = u.root, inner, u.folders, nil, "."
	return nil
}

type unpacker struct {
	in   *tar.Reader
	o    UnpackOptions
	root *os.Root
	// name replaces the first part of each name in the stream, unless all of it is kept.
	name    string
	folders []*tar.Header // modes and times follow when their files are there
	// outer is where the folder that is copied is, once root is that folder; top is the folder
	// itself, if it is new.
	outer *os.Root
	top   []*tar.Header
	done  Result
}

// place finds out where the stream lands.
func (u *unpacker) place(to string, first *tar.Header) (err error) {
	info, err := os.Stat(to)
	folder := first.Typeflag == tar.TypeDir
	ends := to != "" && os.IsPathSeparator(to[len(to)-1])
	switch {
	case err == nil && info.IsDir():
		u.name = path.Base(path.Clean(first.Name))
		if u.o.Name != "" {
			u.name = u.o.Name
		}
		if u.o.Inside && folder {
			u.name = "."
		}
	case u.o.Whole:
		return fmt.Errorf("%s is no folder", to)
	case err == nil && folder:
		return fmt.Errorf("%s is a file, and the source is a folder", to)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case ends && !folder:
		return fmt.Errorf("there is no folder %s", to)
	default:
		to, u.name = filepath.Dir(filepath.Clean(to)), filepath.Base(to)
	}
	u.root, err = os.OpenRoot(to)
	return err
}

// one writes an entry of the stream.
func (u *unpacker) one(header *tar.Header) error {
	name, err := u.local(header.Name)
	if err != nil {
		return err
	}
	header.Name = name
	switch header.Typeflag {
	case tar.TypeDir:
		return u.folder(header)
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.file(header)
	case tar.TypeLink:
		old, err := u.local(header.Linkname)
		if err != nil {
			return err
		}
		if err := u.makeRoom(header.Name); err != nil {
			return err
		}
		u.done.Files++
		return u.root.Link(old, header.Name)
	case tar.TypeSymlink:
		if err := u.makeRoom(header.Name); err != nil {
			return err
		}
		if err := u.root.Symlink(header.Linkname, header.Name); err != nil {
			return err
		}
		u.done.Files++
		return u.owner(header)
	}
	return nil // devices and the like are not copied
}

// local returns where a name of the stream is in the root.
func (u *unpacker) local(name string) (string, error) {
	name = path.Clean(name)
	if !filepath.IsLocal(filepath.FromSlash(strings.TrimPrefix(name, "/"))) {
		return "", errors.New("the name leads out of the folder")
	}
	if !u.o.Whole {
		_, below, has := cutFirst(name)
		switch {
		case !has:
			name = u.name
		case !filepath.IsLocal(filepath.FromSlash(below)):
			return "", errors.New("the name leads out of the folder")
		default:
			name = path.Join(u.name, below)
		}
	}
	if name = filepath.FromSlash(name); !filepath.IsLocal(name) {
		return "", errors.New("the name leads out of the folder")
	}
	return name, nil
}

func cutFirst(name string) (first, rest string, found bool) {
	for i := range len(name) {
		if name[i] == '/' {
			return name[:i], name[i+1:], true
		}
	}
	return name, "", false
}

func (u *unpacker) folder(header *tar.Header) error {
	if header.Name != "." {
		if info, err := u.root.Lstat(header.Name); err != nil || !info.IsDir() {
			if err := u.makeRoom(header.Name); err != nil {
				return err
			}
			if err := u.root.MkdirAll(header.Name, 0o700); err != nil {
				return err
			}
			u.folders = append(u.folders, header)
		}
	}
	return nil
}

func (u *unpacker) file(header *tar.Header) error {
	if parent := filepath.Dir(header.Name); parent != "." { // a stream need not list its folders
		if err := u.root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	out, err := u.open(header.Name)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, u.in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	u.done.Files++
	u.done.Bytes += n
	return u.attributes(header)
}

// open opens a file for writing. A file that is there keeps its place, as one that is mounted
// must; one that runs as a program is replaced.
func (u *unpacker) open(name string) (*os.File, error) {
	if info, err := u.root.Lstat(name); err == nil && info.Mode().IsRegular() {
		if f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
			return f, nil
		}
	}
	if err := u.makeRoom(name); err != nil {
		return nil, err
	}
	return u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// makeRoom removes what has a name, if it is no folder.
func (u *unpacker) makeRoom(name string) error {
	info, err := u.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("there is a folder of that name")
	}
	return u.root.Remove(name)
}

// finish gives folders their attributes, the innermost first.
func (u *unpacker) finish() error {
	for i := len(u.folders) - 1; i >= 0; i-- {
		if err := u.attributes(u.folders[i]); err != nil {
			return err
		}
	}
	if len(u.top) > 0 {
		inner := u.root
		defer func() { u.root = inner }()
		u.root = u.outer
		return u.attributes(u.top[0])
	}
	return nil
}

// attributes sets owner, mode and time.
func (u *unpacker) attributes(header *tar.Header) error {
	if err := u.owner(header); err != nil {
		return err
	}
	if err := u.root.Chmod(header.Name, header.FileInfo().Mode()&u.o.Modes); err != nil {
		return err
	}
	return u.root.Chtimes(header.Name, header.ModTime, header.ModTime)
}

func (u *unpacker) owner(header *tar.Header) error {
	if !u.o.Owners {
		return nil
	}
	return u.root.Lchown(header.Name, header.Uid, header.Gid)
}
