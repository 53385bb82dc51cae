package prepare

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// layOut makes entries in a folder. All access is through an os.Root: on a claim
// the folder keeps what the device left there, and its symbolic links must not
// lead prepare elsewhere.
func layOut(dir, chunks string, entries []contract.Entry) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	l := layout{root: root, chunks: chunks}
	var errs []error
	for _, e := range entries {
		if err := l.make(e); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Path, err))
		}
	}
	// A folder's own mode last, since it may not let anything be made in it.
	for _, e := range slices.Backward(l.made) {
		if err := l.own(e); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.Path, err))
		}
	}
	return errors.Join(errs...)
}

// layout makes the entries of one folder.
type layout struct {
	root   *os.Root
	chunks string
	// made are the new folders. An existing folder keeps the owner and the mode that the
	// device set.
	made []contract.Entry
}

func (l *layout) make(e contract.Entry) error {
	if parent := path.Dir(e.Path); parent != "." {
		if err := l.root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	switch {
	case e.Dir:
		return l.dir(e)
	case e.Link != "":
		return l.link(e)
	default:
		return l.file(e)
	}
}

func (l *layout) dir(e contract.Entry) error {
	info, err := l.root.Lstat(e.Path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		if err := l.root.Remove(e.Path); err != nil {
			return err
		}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	if err := l.root.Mkdir(e.Path, 0o755); err != nil {
		return err
	}
	l.made = append(l.made, e)
	return nil
}

func (l *layout) link(e contract.Entry) error {
	if target, err := l.root.Readlink(e.Path); err == nil && target == e.Link {
		return nil
	}
	if err := l.root.RemoveAll(e.Path); err != nil {
		return err
	}
	return l.root.Symlink(e.Link, e.Path)
}

// file writes beside the target and renames, so that a broken run leaves no half
// file that a seed would then keep.
func (l *layout) file(e contract.Entry) error {
	if e.Seed {
		if _, err := l.root.Lstat(e.Path); err == nil {
			return nil
		}
	}
	if e.Certificate != "" && !l.issued(e) {
		return nil
	}
	temporary := path.Join(path.Dir(e.Path), ".c9s-new-"+path.Base(e.Path))
	defer l.root.Remove(temporary)
	if err := l.write(temporary, e); err != nil {
		return err
	}
	as := e
	as.Path = temporary
	if err := l.own(as); err != nil {
		return err
	}
	if info, err := l.root.Lstat(e.Path); err == nil && info.IsDir() {
		// The kubelet makes an empty folder where a subPath has nothing yet.
		if err := l.root.Remove(e.Path); err != nil {
			return fmt.Errorf("a folder is in the way: %w", err)
		}
	}
	return l.root.Rename(temporary, e.Path)
}

// issued reports whether the node's certificate exists yet.
func (l *layout) issued(e contract.Entry) bool {
	for _, chunk := range e.Chunks {
		if _, err := os.Stat(filepath.Join(l.chunks, chunk)); err != nil {
			return false
		}
	}
	return len(e.Chunks) > 0
}

func (l *layout) write(name string, e contract.Entry) error {
	// What a device left under this name, a link say, is not written to.
	if err := l.root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := l.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	var size int64
	for _, chunk := range e.Chunks {
		n, err := appendChunk(io.MultiWriter(file, sum), filepath.Join(l.chunks, chunk))
		if err != nil {
			return err
		}
		size += n
	}
	if e.Certificate == "" {
		if digest := "sha256:" + hex.EncodeToString(sum.Sum(nil)); size != e.Size || e.Digest != "" && digest != e.Digest {
			return fmt.Errorf("%d bytes with digest %s, and the manifest wants %d with %s: the staged ConfigMaps or Secrets are not of this render", size, digest, e.Size, e.Digest)
		}
	}
	return file.Close()
}

func appendChunk(w io.Writer, name string) (int64, error) {
	chunk, err := os.Open(name)
	if err != nil {
		return 0, fmt.Errorf("staged piece: %w", err)
	}
	defer chunk.Close()
	return io.Copy(w, chunk)
}

// own sets owner and mode; the mode last, since a change of the owner clears
// setuid (chown(2)).
func (l *layout) own(e contract.Entry) error {
	if err := l.root.Lchown(e.Path, e.UID, e.GID); err != nil {
		return err
	}
	return l.root.Chmod(e.Path, fileMode(e.Mode))
}

// fileMode turns Unix mode bits into Go's.
func fileMode(m contract.Mode) os.FileMode {
	mode := os.FileMode(m & 0o777)
	if m&0o4000 != 0 {
		mode |= os.ModeSetuid
	}
	if m&0o2000 != 0 {
		mode |= os.ModeSetgid
	}
	if m&0o1000 != 0 {
		mode |= os.ModeSticky
	}
	return mode
}
