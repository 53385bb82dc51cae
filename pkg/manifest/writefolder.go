package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// FolderResult lists the files of a WriteFolder by what became of them, sorted.
type FolderResult struct {
	Written, Unchanged, Removed []string
}

// ForeignFileError reports files that c9s did not write at the paths of files that it
// would write.
type ForeignFileError struct {
	Dir   string
	Files []string
}

func (e *ForeignFileError) Error() string {
	return fmt.Sprintf("folder %s contains files that c9s did not write and would replace: %s; move them or choose another folder",
		e.Dir, strings.Join(e.Files, ", "))
}

// WriteFolder writes files into dir. It replaces the files of an earlier render, edited
// or not, and removes those that are no longer wanted; it does not touch a file with
// the same contents. Files that c9s did not write stay as they are. If one of them has
// the path of a wanted file, WriteFolder writes nothing and returns a
// *ForeignFileError. It never writes outside dir, whatever symbolic links dir has.
func WriteFolder(dir string, files map[string][]byte) (FolderResult, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return FolderResult{}, fmt.Errorf("making the output folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return FolderResult{}, fmt.Errorf("opening the output folder: %w", err)
	}
	defer root.Close()
	w := folderWriter{root: root, dir: dir, files: files}
	return w.write()
}

type folderWriter struct {
	root  *os.Root
	dir   string
	files map[string][]byte
	// before is the digest of each file of the earlier render.
	before map[string]string
}

func (w *folderWriter) write() (FolderResult, error) {
	var result FolderResult
	var err error
	if w.before, err = w.readManifest(); err != nil {
		return result, err
	}
	var foreign []string
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		have, err := w.root.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			result.Written = append(result.Written, name)
		case err != nil:
			return FolderResult{}, fmt.Errorf("reading %s in %s: %w", name, w.dir, err)
		case bytes.Equal(have, w.files[name]):
			result.Unchanged = append(result.Unchanged, name)
		case !w.ours(name, have):
			foreign = append(foreign, name)
		default:
			result.Written = append(result.Written, name)
		}
	}
	if len(foreign) > 0 {
		return FolderResult{}, &ForeignFileError{Dir: w.dir, Files: foreign}
	}
	for _, name := range result.Written {
		if err := w.replace(name, w.files[name]); err != nil {
			return FolderResult{}, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.before)) {
		if _, wanted := w.files[name]; wanted {
			continue
		}
		removed, err := w.remove(name)
		if err != nil {
			return FolderResult{}, err
		}
		if removed {
			result.Removed = append(result.Removed, name)
		}
	}
	return result, w.writeManifest()
}

// ours reports whether c9s wrote the file: the list says so, or its first line.
func (w *folderWriter) ours(name string, have []byte) bool {
	_, listed := w.before[name]
	return listed || bytes.HasPrefix(have, []byte(fileHeader))
}

// replace writes a temporary file and renames it, so that a reader never sees half a
// file, not even after a crash.
func (w *folderWriter) replace(name string, data []byte) error {
	mode, folderMode := fs.FileMode(0o644), fs.FileMode(0o755)
	if secretFile(name) {
		mode, folderMode = 0o600, 0o700
	}
	if folder := path.Dir(name); folder != "." {
		if err := w.root.MkdirAll(folder, folderMode); err != nil {
			return fmt.Errorf("making %s in %s: %w", folder, w.dir, err)
		}
	}
	temporary := name + ".c9s-tmp"
	_ = w.root.Remove(temporary) // of a render that was killed
	if err := w.root.WriteFile(temporary, data, mode); err != nil {
		return fmt.Errorf("writing %s in %s: %w", name, w.dir, err)
	}
	if err := w.root.Rename(temporary, name); err != nil {
		return fmt.Errorf("writing %s in %s: %w", name, w.dir, err)
	}
	return nil
}

// remove deletes a file of an earlier render, and its folder if that is empty. It keeps
// a file that somebody put in its place.
func (w *folderWriter) remove(name string) (bool, error) {
	have, err := w.root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s in %s: %w", name, w.dir, err)
	}
	if digest(have) != w.before[name] && !bytes.HasPrefix(have, []byte(fileHeader)) {
		return false, nil
	}
	if err := w.root.Remove(name); err != nil {
		return false, fmt.Errorf("removing %s from %s: %w", name, w.dir, err)
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if w.root.Remove(folder) != nil { // the folder is not empty
			break
		}
	}
	return true, nil
}

func secretFile(name string) bool { return strings.HasPrefix(name, secretsFolder+"/") }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (w *folderWriter) readManifest() (map[string]string, error) {
	data, err := w.root.ReadFile(contract.FolderList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s in %s: %w", contract.FolderList, w.dir, err)
	}
	out := contract.ReadFolderList(data)
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if !fs.ValidPath(name) || name == "." {
			return nil, fmt.Errorf("%s in %s names %q, which is not a path in the folder; remove that line", contract.FolderList, w.dir, name)
		}
	}
	return out, nil
}

func (w *folderWriter) writeManifest() error {
	var b bytes.Buffer
	b.WriteString(fileHeader)
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		sum := "-"
		if !secretFile(name) {
			sum = digest(w.files[name])
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	if have, err := w.root.ReadFile(contract.FolderList); err == nil && bytes.Equal(have, b.Bytes()) {
		return nil
	}
	return w.replace(contract.FolderList, b.Bytes())
}
