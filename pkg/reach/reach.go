// Package reach decides what a topology may read on the machine that c9s runs on. A
// topology on disk is the user's own: it reads what the user can, and what it read from
// outside its folder is noted. One that was fetched is a stranger's: it reads what was
// fetched with it, and nothing else.
package reach

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// ErrOutside is the error for a file that a fetched topology names and that was not
// fetched with it.
var ErrOutside = errors.New("it is outside what was fetched")

// CodeReads is the note of what a topology on disk read.
var CodeReads = diag.Declare("reads-outside", diag.Explanation{
	Stage:  diag.StageCompiling,
	Text:   "the output contains files from outside the folder of the topology, or environment variables",
	Cause:  "The topology names them. This is a note; nothing is wrong.",
	Remedy: "Check that the output may contain them.",
})

// Reach is what one topology may read. A nil Reach is everything, without notes. Its
// methods may be called side by side; names of files are absolute and clean.
type Reach struct {
	// dir is the folder that the topology's own files are in, "" for none.
	dir string
	// own is dir as the topology's files are named.
	own     string
	fetched bool
	root    *os.Root // dir, for a fetched topology

	mu      sync.Mutex
	given   map[string]bool // by the user, on the command line
	outside map[string]bool
	env     map[string]bool
	read    map[string]bool // below own
}

// Local is the reach of a topology in a folder on disk.
func Local(dir string) *Reach { return newReach(resolved(dir), dir, false) }

// Fetched is the reach of a topology that was fetched with the files in dir, or, for "",
// without any.
func Fetched(dir string) (*Reach, error) {
	r := newReach(dir, dir, true)
	if dir == "" {
		return r, nil
	}
	var err error
	r.root, err = os.OpenRoot(dir)
	return r, err
}

func newReach(dir, own string, fetched bool) *Reach {
	return &Reach{dir: dir, own: own, fetched: fetched, given: map[string]bool{}, outside: map[string]bool{}, env: map[string]bool{}, read: map[string]bool{}}
}

// Trust returns the reach that the user's word gives to a fetched topology: that of one
// on disk.
func (r *Reach) Trust() *Reach {
	if r == nil {
		return nil
	}
	r.Close()
	return Local(r.dir)
}

// Close ends the reading.
func (r *Reach) Close() {
	if r != nil && r.root != nil {
		r.root.Close()
	}
}

// Limited reports whether the topology was fetched.
func (r *Reach) Limited() bool { return r != nil && r.fetched }

// Give lets the topology read a file, or all in a folder, that the user named.
func (r *Reach) Give(name string) {
	if r != nil {
		r.mu.Lock()
		r.given[name] = true
		r.mu.Unlock()
	}
}

// Stat is os.Stat for a file of the topology.
func (r *Reach) Stat(name string) (fs.FileInfo, error) {
	return through(r, name, os.Stat, (*os.Root).Stat)
}

// Lstat is os.Lstat for a file of the topology.
func (r *Reach) Lstat(name string) (fs.FileInfo, error) {
	return through(r, name, os.Lstat, (*os.Root).Lstat)
}

// Readlink is os.Readlink for a link of the topology.
func (r *Reach) Readlink(name string) (string, error) {
	return through(r, name, os.Readlink, (*os.Root).Readlink)
}

// ReadDir is os.ReadDir for a folder of the topology.
func (r *Reach) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := through(r, name, os.ReadDir, func(root *os.Root, name string) ([]fs.DirEntry, error) {
		return fs.ReadDir(root.FS(), filepath.ToSlash(name))
	})
	if err == nil {
		r.record(name)
	}
	return entries, err
}

// Open opens a file of the topology.
func (r *Reach) Open(name string) (*os.File, error) {
	f, err := through(r, name, os.Open, (*os.Root).Open)
	if err == nil {
		r.note(name)
		r.record(name)
	}
	return f, err
}

// record remembers a file or a folder of the topology that was read.
func (r *Reach) record(name string) {
	if r == nil || r.own == "" {
		return
	}
	if rel, inside := r.inside(name); inside {
		r.mu.Lock()
		r.read[filepath.ToSlash(rel)] = true
		r.mu.Unlock()
	}
}

// inside returns the name of a file in own, if it is there.
func (r *Reach) inside(name string) (rel string, ok bool) {
	rel, err := filepath.Rel(r.own, name)
	return rel, err == nil && filepath.IsLocal(rel)
}

// Folder returns the folder whose files Read names.
func (r *Reach) Folder() string {
	if r == nil {
		return ""
	}
	return r.own
}

// Read returns the files and folders that were read in the topology's folder or, if it was
// fetched, in what was fetched: their names there, sorted, with slashes.
func (r *Reach) Read() []string {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.read))
}

// Outside returns the files that were read outside the folder of a topology on disk, sorted.
func (r *Reach) Outside() []string {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.outside)), func(name string) bool {
		_, inside := r.inside(name)
		return inside
	})
}

// ReadFile returns what a file of the topology holds. More than limit bytes are an error.
func (r *Reach) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is longer than %d bytes", limit)
	}
	return data, err
}

// through calls one of the two: for the whole file system, or for what was fetched.
func through[T any](r *Reach, name string, whole func(string) (T, error), inside func(*os.Root, string) (T, error)) (T, error) {
	if r == nil || !r.fetched || r.isGiven(name) {
		return whole(name)
	}
	var none T
	rel, err := filepath.Rel(r.dir, name)
	if r.root == nil || err != nil || !filepath.IsLocal(rel) {
		return none, &fs.PathError{Op: "open", Path: name, Err: ErrOutside}
	}
	out, err := inside(r.root, rel)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "escapes") { // os.Root's own error has no name
		return none, &fs.PathError{Op: "open", Path: name, Err: ErrOutside}
	}
	return out, err
}

func (r *Reach) isGiven(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := name; ; at = filepath.Dir(at) {
		if r.given[at] {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// note remembers a file that is not in the topology's folder, wherever links lead.
func (r *Reach) note(name string) {
	if r == nil || r.fetched || r.isGiven(name) {
		return
	}
	rel, err := filepath.Rel(r.dir, resolved(name))
	if err != nil || !filepath.IsLocal(rel) {
		r.mu.Lock()
		r.outside[name] = true
		r.mu.Unlock()
	}
}

// resolved is a path without symbolic links, where it has them.
func resolved(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

// Env returns what of an environment (NAME=value) the topology sees: all of it, or, of a
// fetched topology, the variables that are allowed. withheld are the names of the others.
func (r *Reach) Env(env, allowed []string) (seen, withheld []string) {
	if !r.Limited() {
		return env, nil
	}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(allowed, name) {
			seen = append(seen, kv)
		} else {
			withheld = append(withheld, name)
		}
	}
	return seen, withheld
}

// UseEnv notes environment variables whose values are in the output.
func (r *Reach) UseEnv(names ...string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range names {
		r.env[n] = true
	}
}

// mostNoted is how many files or variables the note names.
const mostNoted = 100

// Note reports what a topology on disk read from outside its folder. ok is false where that
// is nothing.
func (r *Reach) Note(file string) (d diag.Diagnostic, ok bool) {
	if r == nil || r.fetched {
		return d, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var parts []string
	if len(r.outside) > 0 {
		parts = append(parts, "files from outside its folder ("+list(r.outside)+")")
	}
	if len(r.env) > 0 {
		parts = append(parts, "environment variables ("+list(r.env)+")")
	}
	if len(parts) == 0 {
		return d, false
	}
	return diag.Diagnostic{
		Code: CodeReads, Severity: diag.Note, Pos: diag.Pos{File: file},
		Message: "the output contains " + strings.Join(parts, " and "),
	}, true
}

func list(set map[string]bool) string {
	names := slices.Sorted(maps.Keys(set))
	if n := len(names); n > mostNoted {
		names = append(names[:mostNoted:mostNoted], fmt.Sprintf("and %d more", n-mostNoted))
	}
	return strings.Join(names, ", ")
}
