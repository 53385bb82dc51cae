package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/fetch"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/reach"
	"github.com/c9s-lab/c9s/pkg/topology"
)

const (
	// maxFile is the most that one staged file may hold, in bytes; maxDirFiles
	// how many entries a staged folder may have.
	maxFile     = 64 << 20
	maxDirFiles = 5000
)

// stager reads files of the user into the lab, each only once.
type stager struct {
	c    *compiler
	refs map[string]lab.FileRef // by absolute path
	// told are the files that a diagnostic already names.
	told map[string]bool
	// mapped are the names of MapFiles that were used.
	mapped map[string]bool
}

func newStager(c *compiler) *stager {
	return &stager{c: c, refs: map[string]lab.FileRef{}, told: map[string]bool{}, mapped: map[string]bool{}}
}

// bytes stores data in the lab and returns its reference. A private key is always a secret.
func (s *stager) bytes(data []byte, mode uint32, origin string) lab.FileRef {
	ref := s.c.lab.AddFile(data, mode, origin)
	ref.Secret = holdsPrivateKey(data)
	return ref
}

// resolve makes a path of the topology absolute and clean: "~" and relative ones by
// containerlab's rules, and replaced as --map-file says. Checks of a
// path use the result, so that ".." cannot bypass them.
func (s *stager) resolve(written string) string {
	if to, ok := s.replacement(written); ok {
		return absolute(to)
	}
	p := written
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		p = filepath.Join(s.c.o.Home, p[1:])
	case !filepath.IsAbs(p):
		p = filepath.Join(s.c.f.Dir, p)
	}
	if to, ok := s.replacement(p); ok {
		return absolute(to)
	}
	return filepath.Clean(p)
}

// replacement returns the file that --map-file gives for a name.
func (s *stager) replacement(name string) (string, bool) {
	to, ok := s.c.o.MapFiles[name]
	if ok {
		s.mapped[name] = true
	}
	return to, ok
}

// checkMapFiles reports replacements for files that the topology does not name.
func (s *stager) checkMapFiles() {
	for from, to := range s.c.o.MapFiles {
		if !s.mapped[from] {
			s.c.diags.Warnf(CodeMapUnused, diag.Pos{File: s.c.f.Path}, "write FROM as the topology does", "--map-file %s=%s has no effect: the topology names no file %q", from, to, from)
		}
	}
}

func absolute(p string) string {
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}

// file stages one file. written is what the topology says, what names its
// purpose ("startup-config"). ok is false after an error was reported.
func (s *stager) file(written string, pos diag.Pos, what string) (lab.FileRef, bool) {
	if ref, ok := s.supplied(written); ok {
		return ref, true
	}
	p := s.resolve(written)
	if ref, have := s.refs[p]; have {
		return ref, true
	}
	info, err := s.c.o.Reach.Stat(p)
	if err != nil {
		return s.missing(written, p, pos, what, err)
	}
	if info.IsDir() {
		s.c.diags.Errorf(CodeFileUnreadable, pos, "name a file", "%s %q is a folder", what, written)
		return lab.FileRef{}, false
	}
	data, ok := s.read(p, info, written, pos, what)
	if !ok {
		return lab.FileRef{}, false
	}
	ref := s.fromDisk(p, info, data, s.origin(p, written))
	s.refs[p] = ref
	return ref, true
}

// origin is how messages and outputs call a file: relative to the topology.
func (s *stager) origin(p, written string) string {
	if rel, err := filepath.Rel(s.c.f.Dir, p); err == nil && s.c.f.Dir != "" && !strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(rel)
	}
	return written
}

func (s *stager) read(p string, info fs.FileInfo, written string, pos diag.Pos, what string) ([]byte, bool) {
	if !info.Mode().IsRegular() {
		s.c.diags.Errorf(CodeFileUnreadable, pos, "name a regular file", "%s %q is neither a file nor a folder", what, written)
		return nil, false
	}
	if info.Size() > maxFile {
		s.c.diags.Errorf(CodeFileTooLarge, pos, "add it to the image, or put it on a volume", "%s %q has %d bytes, but the limit for staged files is %d", what, written, info.Size(), maxFile)
		return nil, false
	}
	data, err := s.c.o.Reach.ReadFile(p, maxFile)
	if err != nil {
		s.c.diags.Errorf(CodeFileUnreadable, pos, "check its permissions", "%s %q cannot be read: %v", what, written, topology.UnwrapPath(err))
		return nil, false
	}
	return data, true
}

// outside reports that a fetched topology names a file that was not fetched with it.
// It does not reveal whether the file exists.
func (s *stager) outside(written, p string, pos diag.Pos, what string) {
	s.c.diags.Errorf(CodeFileOutside, pos,
		fmt.Sprintf("to give it to the topology, pass --map-file %s=FILE, or --trust to allow all files that you can read", fetch.Redact(written)),
		"%s %q was not fetched with the topology", what, written)
}

// missing reports that a file does not exist, or creates a placeholder.
func (s *stager) missing(written, p string, pos diag.Pos, what string, err error) (lab.FileRef, bool) {
	written = fetch.Redact(written)
	if errors.Is(err, reach.ErrOutside) {
		s.outside(written, p, pos, what)
		return lab.FileRef{}, false
	}
	if s.c.o.AllowMissing {
		if !s.told[p] {
			s.told[p] = true
			s.c.diags.Warnf(CodeFilePlaceholder, pos, "supply the file before you deploy", "%s %q does not exist; an empty file replaces it", what, written)
		}
		ref := s.bytes(nil, 0o644, written)
		ref.Placeholder = true
		return ref, true
	}
	reason := "does not exist"
	if !errors.Is(err, fs.ErrNotExist) {
		reason = "cannot be read: " + topology.UnwrapPath(err).Error()
	}
	hint := fmt.Sprintf("create %s, pass --map-file %s=FILE, or --allow-missing to continue without it", p, written)
	if !filepath.IsAbs(p) {
		hint = fmt.Sprintf("the topology was not read from a folder; pass --map-file %s=FILE", written)
	}
	s.c.diags.Errorf(CodeFileMissing, pos, hint, "%s %q %s", what, written, reason)
	return lab.FileRef{}, false
}

// text stages a startup-config or licence: a URL, inline text, or a path.
func (s *stager) text(value string, pos diag.Pos, what, inlineName string) (ref lab.FileRef, name string, ok bool) {
	if strings.Contains(value, "\n") {
		return s.bytes([]byte(value), 0o644, "inline"), inlineName, true
	}
	if u, err := url.Parse(value); err == nil && u.Scheme != "" && strings.Contains(value, "://") {
		return s.remote(value, u, pos, what)
	}
	ref, ok = s.file(value, pos, what)
	return ref, filepath.Base(s.resolve(value)), ok
}

// remote stages the contents of a URL.
func (s *stager) remote(value string, u *url.URL, pos diag.Pos, what string) (lab.FileRef, string, bool) {
	name := path.Base(u.Path)
	shown := fetch.Redact(value)
	if to, mapped := s.replacement(value); mapped {
		ref, ok := s.file(to, pos, what)
		return ref, name, ok
	}
	if ref, have := s.refs[value]; have {
		return ref, name, true
	}
	if s.c.o.AllowMissing {
		ref, ok := s.missing(value, value, pos, what, fs.ErrNotExist)
		return ref, name, ok
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		s.c.diags.Errorf(CodeFetch, pos, fmt.Sprintf("download it and pass --map-file %s=FILE", shown), "%s %q: c9s fetches http and https only", what, shown)
		return lab.FileRef{}, name, false
	}
	if s.c.o.Fetch == nil {
		s.c.diags.Errorf(CodeFetch, pos, fmt.Sprintf("download it and pass --map-file %s=FILE", shown), "%s %q: it cannot be fetched without a network", what, shown)
		return lab.FileRef{}, name, false
	}
	data, err := s.c.o.Fetch(s.c.ctx, value)
	if err != nil {
		hint := fmt.Sprintf("check the URL, or download it and pass --map-file %s=FILE", shown)
		var private *fetch.PrivateError
		if errors.As(err, &private) {
			hint = fmt.Sprintf("a fetched topology can fetch only from public addresses: download the file and pass --map-file %s=FILE, or --trust the topology", shown)
		}
		s.c.diags.Errorf(CodeFetch, pos, hint, "%s cannot be fetched: %v", what, err)
		return lab.FileRef{}, name, false
	}
	ref := s.bytes(data, 0o644, shown)
	s.refs[value] = ref
	return ref, name, true
}

// dir stages a folder with its contents. Symbolic links stay as they are: in a bind mount
// they lead to the container's own files, and following them here would include files that the
// topology does not name.
func (s *stager) dir(root, written string, pos diag.Pos, what string) (*lab.Dir, bool) {
	info, err := s.c.o.Reach.Stat(root)
	if err != nil {
		s.c.diags.Errorf(CodeFileUnreadable, pos, "check its permissions", "%s %q: %v", what, written, topology.UnwrapPath(err))
		return nil, false
	}
	d := &lab.Dir{Mode: stagedMode(info.Mode())}
	ok := s.walk(root, "", d, written, pos, what, 0, map[string]bool{})
	slices.SortFunc(d.Entries, func(a, b lab.DirEntry) int { return strings.Compare(a.Path, b.Path) })
	s.warnOutside(d, written, pos, what)
	return d, ok
}

// warnOutside warns once per folder about symbolic links that leave it.
func (s *stager) warnOutside(d *lab.Dir, written string, pos diag.Pos, what string) {
	var outside []lab.DirEntry
	for _, e := range d.Entries {
		if e.Link != "" && !staysInside(e.Path, e.Link) {
			outside = append(outside, e)
		}
	}
	if len(outside) == 0 {
		return
	}
	more := ""
	if n := len(outside); n > 1 {
		more = " (and " + diag.Count(n-1, "more link") + " like it)"
	}
	s.c.diags.Warnf(CodeLinkOutside, pos, "replace the link with the file if the node needs it",
		"%s %q: the symbolic link %s points to %s, which is not in the folder%s; the node resolves it in its own file system", what, written, outside[0].Path, outside[0].Link, more)
}

// rendered omits files that an earlier render wrote into a folder: otherwise each render
// would contain the one before it, with its Secrets in a ConfigMap.
func (s *stager) rendered(folder string, leftOut map[string]bool) {
	list := filepath.Join(folder, contract.FolderList)
	data, err := s.c.o.Reach.ReadFile(list, maxFile)
	if err != nil {
		return
	}
	leftOut[list] = true
	for name := range contract.ReadFolderList(data) {
		leftOut[filepath.Join(folder, filepath.FromSlash(name))] = true
	}
}

// walk stages the contents of root/rel and adds omitted files to leftOut.
func (s *stager) walk(root, rel string, d *lab.Dir, written string, pos diag.Pos, what string, depth int, leftOut map[string]bool) bool {
	s.rendered(filepath.Join(root, rel), leftOut)
	entries, err := s.c.o.Reach.ReadDir(filepath.Join(root, rel))
	if err != nil {
		s.c.diags.Errorf(CodeFileUnreadable, pos, "check its permissions", "%s %q cannot be read: %v", what, written, topology.UnwrapPath(err))
		return false
	}
	if depth > 32 {
		s.c.diags.Errorf(CodeFileTooLarge, pos, "name a smaller folder", "%s %q is more than 32 folders deep", what, written)
		return false
	}
	ok := true
	for _, e := range entries {
		if len(d.Entries) >= maxDirFiles {
			s.c.diags.Errorf(CodeFileTooLarge, pos, "name a smaller folder, or add it to the image", "%s %q has more than %d entries", what, written, maxDirFiles)
			return false
		}
		if !utf8.ValidString(e.Name()) {
			s.c.diags.Errorf(CodeFileUnreadable, pos, "rename the file", "%s %q contains a file whose name %q is not UTF-8", what, written, e.Name())
			ok = false
			continue
		}
		name := path.Join(filepath.ToSlash(rel), e.Name())
		full := filepath.Join(root, filepath.FromSlash(name))
		if leftOut[full] {
			continue
		}
		if e.Type()&fs.ModeSymlink != 0 {
			target, err := s.c.o.Reach.Readlink(full)
			if err != nil {
				s.c.diags.Warnf(CodeFileUnreadable, pos, "check its permissions", "%s %q: %s is omitted: %v", what, written, name, topology.UnwrapPath(err))
				continue
			}
			d.Entries = append(d.Entries, lab.DirEntry{Path: name, Mode: 0o777, Link: filepath.ToSlash(target)})
			continue
		}
		info, err := s.c.o.Reach.Lstat(full)
		switch {
		case err != nil:
			s.c.diags.Warnf(CodeFileUnreadable, pos, "check its permissions", "%s %q: %s is omitted: %v", what, written, name, topology.UnwrapPath(err))
		case info.IsDir():
			at := len(d.Entries)
			d.Entries = append(d.Entries, lab.DirEntry{Path: name, Mode: stagedMode(info.Mode())})
			ok = s.walk(root, filepath.FromSlash(name), d, written, pos, what, depth+1, leftOut) && ok
			if len(d.Entries) == at+1 && holdsOf(full, leftOut) {
				d.Entries = d.Entries[:at] // a render made it
			}
		case !info.Mode().IsRegular():
			s.c.diags.Warnf(CodeFileUnreadable, pos, "remove it from the folder if the node does not need it", "%s %q: %s is neither a file nor a folder and is omitted", what, written, name)
		default:
			data, readable := s.read(full, info, written+"/"+name, pos, what)
			if !readable {
				ok = false
				continue
			}
			ref := s.fromDisk(full, info, data, s.origin(full, written+"/"+name))
			d.Entries = append(d.Entries, lab.DirEntry{Path: name, Mode: ref.Mode, File: &ref})
		}
	}
	return ok
}

// holdsOf reports that something in or below a folder is omitted.
func holdsOf(folder string, leftOut map[string]bool) bool {
	for name := range leftOut {
		if strings.HasPrefix(name, folder+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// fromDisk is the payload of a file on disk. Keys and licences keep their mode as it
// is, for programs reject a private key that others can read.
func (s *stager) fromDisk(p string, info fs.FileInfo, data []byte, origin string) lab.FileRef {
	ref := s.bytes(data, stagedMode(info.Mode()), origin)
	if ref.Secret = ref.Secret || secretName(p); ref.Secret {
		ref.Mode = modeBits(info.Mode())
	}
	return ref
}

// stagedMode returns the mode of a file or folder in the node: what its owner can read or
// execute, everybody can. So two checkouts give the same bytes with any umask. Write permission
// for others is kept, but not for the group alone, which depends on the umask too.
func stagedMode(m fs.FileMode) uint32 {
	bits := modeBits(m)
	owner := bits >> 6 & 0o5
	mode := bits&0o7700 | owner<<3 | owner
	if bits&0o002 != 0 {
		mode |= 0o022
	}
	return mode
}

// modeBits are permissions with setuid, setgid and sticky where chmod(2) has them.
func modeBits(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	for _, special := range []struct {
		mode fs.FileMode
		bit  uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if m&special.mode != 0 {
			bits |= special.bit
		}
	}
	return bits
}

// staysInside reports whether a relative link target at name stays in its root.
func staysInside(name, target string) bool {
	if filepath.IsAbs(target) {
		return false
	}
	joined := path.Join(path.Dir(name), filepath.ToSlash(target))
	return joined != ".." && !strings.HasPrefix(joined, "../")
}
