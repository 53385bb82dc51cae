// Package snapshot holds a lab with the configurations of its nodes as one folder or archive.
package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// Version is the version of the format.
const Version = "c9s.dev/snapshot/v1"

// The files of a snapshot.
const (
	infoFile        = "snapshot.json"
	allocationsFile = "allocations.json"
	labFolder       = "lab"
)

// AllocationsFile is where Restore puts the allocations, next to the topology.
const AllocationsFile = "c9s-allocations.json"

// The limits of a snapshot. Variables for the tests.
var (
	maxFiles = 10_000
	maxBytes = int64(256 << 20)
)

// Snapshot is a lab at one time.
type Snapshot struct {
	Info
	// Allocations are the lab's addresses and ids, nil if they are not known.
	Allocations *lab.Allocations
	// Files are the topology and what it reads: their names are relative to its folder.
	Files []File
}

// Info describes a snapshot.
type Info struct {
	Version   string    `json:"version"`
	Lab       string    `json:"lab"`
	Namespace string    `json:"namespace"`
	Created   time.Time `json:"created"`
	// C9s is the version of c9s that wrote it.
	C9s string `json:"c9s"`
	// Topology is the file of the topology, and Kinds the folder of the user's own kinds, ""
	// for none.
	Topology string `json:"topology"`
	Kinds    string `json:"kinds,omitempty"`
	Nodes    []Node `json:"nodes"`
	// Missing is what the topology reads and the snapshot lacks.
	Missing []string `json:"missing,omitempty"`
}

// Where the configuration of a node comes from.
const (
	FromRunning = "running"
	FromSaved   = "saved"
	FromNowhere = "none"
)

// Node is a node of a snapshot.
type Node struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
	// From is running, saved or none.
	From string `json:"from"`
	// File is the file with its configuration, "" for none; Reason says why there is none.
	File   string `json:"file,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// File is a file or a folder of a snapshot.
type File struct {
	// Name has slashes.
	Name string
	// Mode has the permission bits.
	Mode fs.FileMode
	Dir  bool
	Data []byte
}

// Set adds a file, or replaces one.
func (s *Snapshot) Set(f File) {
	if i := slices.IndexFunc(s.Files, func(g File) bool { return g.Name == f.Name }); i >= 0 {
		s.Files[i] = f
		return
	}
	s.Files = append(s.Files, f)
}

// File returns a file, nil if there is none of that name.
func (s *Snapshot) File(name string) *File {
	if i := slices.IndexFunc(s.Files, func(f File) bool { return f.Name == name }); i >= 0 {
		return &s.Files[i]
	}
	return nil
}

// contents returns the files of the snapshot as they are stored, sorted by name.
func (s *Snapshot) contents() ([]File, error) {
	s.Info.Version = Version
	info, err := json.MarshalIndent(s.Info, "", "  ")
	if err != nil {
		return nil, err
	}
	out := []File{{Name: infoFile, Mode: 0o600, Data: append(info, '\n')}}
	if s.Allocations != nil {
		f, err := s.allocations(allocationsFile)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	for _, f := range s.Files {
		if err := legal(f.Name); err != nil {
			return nil, err
		}
		f.Name = path.Join(labFolder, f.Name)
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// allocations returns the file with the allocations.
func (s *Snapshot) allocations(name string) (File, error) {
	data, err := json.MarshalIndent(s.Allocations, "", " ")
	return File{Name: name, Mode: 0o600, Data: append(data, '\n')}, err
}

// parse is the opposite of contents.
func parse(files []File) (*Snapshot, error) {
	s := &Snapshot{}
	found := false
	for _, f := range files {
		below, inLab := strings.CutPrefix(f.Name, labFolder+"/")
		switch {
		case inLab:
			f.Name = below
			s.Files = append(s.Files, f)
		case f.Dir:
		case f.Name == infoFile:
			found = true
			if err := json.Unmarshal(f.Data, &s.Info); err != nil {
				return nil, fmt.Errorf("%s: %w", infoFile, err)
			}
		case f.Name == allocationsFile:
			a, err := lab.JoinAllocations(f.Data)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", allocationsFile, err)
			}
			s.Allocations = &a
		}
	}
	topology := s.File(s.Topology)
	switch {
	case !found:
		return nil, fmt.Errorf("it is not a snapshot: it has no %s", infoFile)
	case s.Info.Version != Version:
		return nil, fmt.Errorf("its version is %q, and this c9s reads %s", s.Info.Version, Version)
	case topology == nil || topology.Dir:
		return nil, fmt.Errorf("it has no topology %q", s.Topology)
	case s.Kinds != "" && (s.File(s.Kinds) == nil || !s.File(s.Kinds).Dir):
		return nil, fmt.Errorf("it has no folder %q", s.Kinds)
	}
	return s, nil
}

// legal reports why a name is not that of a file below a folder, on any machine.
func legal(name string) error {
	ok := fs.ValidPath(name) && name != "." && !strings.ContainsAny(name, "\\:") && filepath.IsLocal(filepath.FromSlash(name))
	for _, r := range name {
		ok = ok && r >= ' ' && r != 0x7f
	}
	if !ok {
		return fmt.Errorf("%q is not the name of a file in the snapshot", name)
	}
	return nil
}

// budget counts what is read.
type budget struct {
	files int
	bytes int64
	seen  map[string]bool
}

func newBudget() *budget { return &budget{seen: map[string]bool{}} }

// take counts a file that has this size, and rejects it if there is too much.
func (b *budget) take(name string, size int64) error {
	if err := legal(name); err != nil {
		return err
	}
	if b.seen[name] {
		return fmt.Errorf("%s is there twice", name)
	}
	b.seen[name] = true
	b.files++
	b.bytes += size
	switch {
	case b.files > maxFiles:
		return fmt.Errorf("it has more than %d files", maxFiles)
	case size < 0 || b.bytes > maxBytes:
		return fmt.Errorf("it has more than %d MiB", maxBytes>>20)
	}
	return nil
}

// perm are the permission bits that files of a snapshot have: those of others do not let them
// write, and the owner may read and write.
func perm(mode fs.FileMode, dir bool) fs.FileMode {
	if dir {
		return mode&0o755 | 0o700
	}
	return mode&0o755 | 0o600
}

// errLink is the error of what is no file and no folder.
var errLink = errors.New("it is not a file or a folder; links and devices are rejected")
