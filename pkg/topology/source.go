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
)

// Source is a topology file's bytes and where they came from.
type Source struct {
	// Name is how diagnostics call the file; Base its base name.
	Name string
	Base string
	// Dir is the folder of the file, "" where it has none (standard input, URL).
	Dir  string
	Data []byte

	cleanup func()
}

// Close removes what was fetched for the source.
func (s *Source) Close() {
	if s.cleanup != nil {
		s.cleanup()
	}
}

// Open finds a topology as containerlab does. ref is a file, a folder that holds
// exactly one *.clab.yml or *.clab.yaml, "-" for stdin, an http(s) URL of a file,
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
		return &Source{Name: "<stdin>", Base: "stdin.clab.yml", Data: data}, nil
	}
	info, err := os.Stat(ref)
	if err == nil {
		if info.IsDir() {
			if ref, err = onlyTopology(ref); err != nil {
				return nil, err
			}
		}
		return openFile(ctx, ref)
	}
	if strings.HasPrefix(ref, "s3://") {
		return nil, fmt.Errorf("%s: S3 is not supported; download the file and pass its path", ref)
	}
	if repo, ok := fetch.ParseRepo(ref); ok {
		return openRepo(ctx, repo)
	}
	if u, uerr := url.Parse(ref); uerr == nil && (u.Scheme == "http" || u.Scheme == "https") {
		data, err := fetch.HTTP(ctx, ref)
		if err != nil {
			return nil, err
		}
		return &Source{Name: ref, Base: path.Base(u.Path), Data: data}, nil
	}
	return nil, fmt.Errorf("%s: %w; name a topology file, a folder with one, a URL or a Git repository", ref, UnwrapPath(err))
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
	return &Source{Name: filepath.ToSlash(filepath.Clean(name)), Base: filepath.Base(name), Dir: dir, Data: data}, nil
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

// UnwrapPath leaves out of an error of the file system which file it is.
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
		name := filepath.Join(clone, filepath.FromSlash(path.Clean("/"+repo.Path)))
		if info, err := os.Stat(name); err != nil {
			return nil, fmt.Errorf("%s has no %s", repo.URL, repo.Path)
		} else if info.IsDir() {
			if name, err = onlyTopology(name); err != nil {
				return nil, fmt.Errorf("%s: %w", repo.URL, err)
			}
		}
		return openFile(ctx, name)
	}()
	if err != nil {
		cleanup()
		return nil, err
	}
	src.Name = repo.URL + "/" + src.Base
	src.cleanup = cleanup
	return src, nil
}

// onlyTopology finds the one topology file of a folder.
func onlyTopology(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		if !e.IsDir() && (strings.HasSuffix(e.Name(), ".clab.yml") || strings.HasSuffix(e.Name(), ".clab.yaml")) {
			found = append(found, e.Name())
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no *.clab.yml or *.clab.yaml in %s; name the topology file", dir)
	case 1:
		return filepath.Join(dir, found[0]), nil
	default:
		return "", fmt.Errorf("there is more than one topology in %s (%s); name one of them", dir, strings.Join(found, ", "))
	}
}
