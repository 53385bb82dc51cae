package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/fetch"
	"github.com/c9s-lab/c9s/pkg/reach"
)

// Source is a topology file's bytes and where they came from.
type Source struct {
	// Name is how diagnostics call the file; Base its base name.
	Name string
	Base string
	// Dir is the folder of the file, "" where it has none (standard input, URL).
	Dir  string
	Data []byte
	// Parts are the files of a lab that is written as clabernetes' documents. A topology
	// file has none.
	Parts []Part
	// Reach is what the topology may read of this machine; nil for everything.
	Reach *reach.Reach
	// Branch and Hash are those of the repository that the topology was fetched from,
	// "" for one that was not.
	Branch, Hash string

	cleanup func()
}

// Close removes what was fetched for the source.
func (s *Source) Close() {
	s.Reach.Close()
	if s.cleanup != nil {
		s.cleanup()
	}
}

// Open finds a topology as containerlab does. ref is a file, a folder that holds
// exactly one *.clab.yml or *.clab.yaml, or documents of clabernetes, "-" for stdin, an http(s) URL of a file,
// a Git repository (or a folder or file in it), or "" for the current folder.
func Open(ctx context.Context, ref string, stdin io.Reader) (*Source, error) {
	if ref == "" {
		ref = "."
	}
	if ref == "-" {
		data, err := readAll(ctx, func() (io.ReadCloser, error) { return io.NopCloser(stdin), nil })
		if err != nil {
			return nil, fmt.Errorf("reading the topology from standard input: %w", err)
		}
		here, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		return (&Source{Name: "<stdin>", Base: "stdin.clab.yml", Data: data, Reach: reach.Local(here)}).asDocuments(), nil
	}
	info, err := os.Stat(ref)
	if err == nil {
		if info.IsDir() {
			return openFolder(ctx, ref)
		}
		src, err := openFile(ctx, ref)
		if err != nil {
			return nil, err
		}
		return src.asDocuments(), nil
	}
	if strings.HasPrefix(ref, "s3://") {
		return nil, fmt.Errorf("%s: S3 is not supported; download the file and pass its path", ref)
	}
	if repo, ok := fetch.ParseRepo(ref); ok {
		return openRepo(ctx, repo)
	}
	if u, uerr := url.Parse(ref); uerr == nil && (u.Scheme == "http" || u.Scheme == "https") {
		data, err := fetch.Typed(ctx, ref)
		if err != nil {
			return nil, err
		}
		r, err := reach.Fetched("")
		if err != nil {
			return nil, err
		}
		return (&Source{Name: fetch.Redact(ref), Base: path.Base(u.Path), Data: data, Reach: r}).asDocuments(), nil
	}
	return nil, fmt.Errorf("%s: %w; name a topology file, a folder with one, a URL or a Git repository", fetch.Redact(ref), UnwrapPath(err))
}

func openFile(ctx context.Context, name string) (*Source, error) {
	data, err := readAll(ctx, func() (io.ReadCloser, error) { return os.Open(name) })
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, UnwrapPath(err))
	}
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	return &Source{Name: filepath.ToSlash(filepath.Clean(name)), Base: filepath.Base(name), Dir: dir, Data: data, Reach: reach.Local(dir)}, nil
}

// readAll reads a topology of at most fetch.MaxSize bytes. A pipe that nobody writes to
// is waited for until ctx ends.
func readAll(ctx context.Context, open func() (io.ReadCloser, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		r, err := open()
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer r.Close()
		data, err := io.ReadAll(io.LimitReader(r, fetch.MaxSize+1))
		if err == nil && len(data) > fetch.MaxSize {
			err = fmt.Errorf("it is longer than %d bytes", fetch.MaxSize)
		}
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// UnwrapPath omits of an error of the file system which file it is.
func UnwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func openRepo(ctx context.Context, repo fetch.Repo) (*Source, error) {
	tmp, err := os.MkdirTemp("", "c9s-repo-")
	if err != nil {
		return nil, err
	}
	cleanup := func() { os.RemoveAll(tmp) }
	clone := filepath.Join(tmp, "repo")
	src, err := func() (*Source, error) {
		if err := fetch.Clone(ctx, repo, clone); err != nil {
			return nil, err
		}
		branch, hash := fetch.Head(ctx, clone)
		// Git's own folder has the URL with its password, and is no part of the topology.
		if err := os.RemoveAll(filepath.Join(clone, ".git")); err != nil {
			return nil, err
		}
		src, err := inRepo(clone, repo)
		if err == nil {
			src.Branch, src.Hash = branch, hash
		}
		return src, err
	}()
	if err != nil {
		cleanup()
		return nil, err
	}
	src.cleanup = cleanup
	return src, nil
}

// inRepo opens the topology of a clone, without following links out of it.
func inRepo(clone string, repo fetch.Repo) (*Source, error) {
	r, err := reach.Fetched(clone)
	if err != nil {
		return nil, err
	}
	src, err := func() (*Source, error) {
		where := fetch.Redact(repo.URL)
		name := filepath.Join(clone, filepath.FromSlash(path.Clean("/"+repo.Path)))
		info, err := r.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s has no %s", where, repo.Path)
		case err != nil:
			return nil, fmt.Errorf("%s: %s: %w", where, repo.Path, UnwrapPath(err))
		case info.IsDir():
			entries, err := r.ReadDir(name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", where, UnwrapPath(err))
			}
			base, err := theTopology(entries, path.Join("/", repo.Path))
			if errors.Is(err, errNoTopology) {
				parts, derr := documentsAmong(entries, func(base string) ([]byte, error) {
					return r.ReadFile(filepath.Join(name, base), fetch.MaxSize)
				}, func(base string) string { return where + "/" + base })
				if derr != nil {
					return nil, fmt.Errorf("%s: %w", where, derr)
				}
				if parts != nil {
					return &Source{Name: where, Base: filepath.Base(name), Dir: name, Parts: parts, Reach: r}, nil
				}
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
			name = filepath.Join(name, base)
		}
		data, err := r.ReadFile(name, fetch.MaxSize)
		if err != nil {
			return nil, fmt.Errorf("%s: reading %s: %w", where, filepath.Base(name), UnwrapPath(err))
		}
		base := filepath.Base(name)
		return (&Source{Name: where + "/" + base, Base: base, Dir: filepath.Dir(name), Data: data, Reach: r}).asDocuments(), nil
	}()
	if err != nil {
		r.Close()
	}
	return src, err
}

// openFolder opens the one topology file of a folder, or its documents.
func openFolder(ctx context.Context, dir string) (*Source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	base, err := theTopology(entries, dir)
	if errors.Is(err, errNoTopology) {
		parts, derr := documentsAmong(entries, func(base string) ([]byte, error) {
			src, err := openFile(ctx, filepath.Join(dir, base))
			if err != nil {
				return nil, err
			}
			return src.Data, nil
		}, func(base string) string { return filepath.ToSlash(filepath.Join(dir, base)) })
		if derr != nil {
			return nil, derr
		}
		if parts != nil {
			full, err := filepath.Abs(dir)
			if err != nil {
				return nil, err
			}
			return &Source{Name: filepath.ToSlash(filepath.Clean(dir)), Base: filepath.Base(full), Dir: full, Parts: parts, Reach: reach.Local(full)}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	src, err := openFile(ctx, filepath.Join(dir, base))
	if err != nil {
		return nil, err
	}
	return src.asDocuments(), nil
}

// errNoTopology is the error for a folder without a topology file.
var errNoTopology = errors.New("there is no *.clab.yml or *.clab.yaml")

// theTopology is the one topology file among the entries of a folder.
func theTopology(entries []fs.DirEntry, dir string) (string, error) {
	var found []string
	for _, e := range entries {
		if !e.IsDir() && (strings.HasSuffix(e.Name(), ".clab.yml") || strings.HasSuffix(e.Name(), ".clab.yaml")) {
			found = append(found, e.Name())
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w in %s; name the topology file", errNoTopology, dir)
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("there are several topologies in %s (%s); name one", dir, strings.Join(found, ", "))
	}
}
