package compile

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// Supplied is a file that came with the topology's text.
type Supplied struct {
	Data []byte
	Mode uint32
	// Secret keeps the file in a Secret, whatever it is called.
	Secret bool
}

// supplied stages a file that came with the topology's text.
func (s *stager) supplied(written string) (lab.FileRef, bool) {
	name := path.Clean(written)
	f, ok := s.c.o.Supplied[name]
	if !ok {
		return lab.FileRef{}, false
	}
	ref := s.bytes(f.Data, f.Mode, name)
	ref.Secret = ref.Secret || f.Secret || secretName(name)
	return ref, true
}

// suppliedDir stages a folder of such files; nil if there is none.
func (s *stager) suppliedDir(written string, pos diag.Pos, what string) *lab.Dir {
	root := path.Clean(written) + "/"
	entries := map[string]lab.DirEntry{}
	for _, name := range slices.Sorted(maps.Keys(s.c.o.Supplied)) {
		rel, below := strings.CutPrefix(name, root)
		if !below {
			continue
		}
		ref, _ := s.supplied(name)
		entries[rel] = lab.DirEntry{Path: rel, Mode: ref.Mode, File: &ref}
		for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
			entries[dir] = lab.DirEntry{Path: dir, Mode: 0o755}
		}
	}
	if len(entries) == 0 {
		return nil
	}
	if len(entries) > maxDirFiles {
		s.c.diags.Errorf(CodeFileTooLarge, pos, "name a smaller folder, or add it to the image", "%s %q has more than %d entries", what, written, maxDirFiles)
	}
	d := &lab.Dir{Mode: 0o755}
	for _, name := range slices.SortedFunc(maps.Keys(entries), func(a, b string) int {
		return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
	}) {
		d.Entries = append(d.Entries, entries[name])
	}
	return d
}
