package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Repo is a place in a Git repository.
type Repo struct {
	// URL is what git clones.
	URL string
	// Branch is a branch or tag, "" for the default one.
	Branch string
	// Path is a file or folder in the repository, slash-separated, "" for its root.
	Path string
}

var shorthand = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+$`)

// ParseRepo recognises what containerlab takes for a repository: a GitHub or
// GitLab page (also of a branch's folder or file), any URL that ends in .git, and
// the short form owner/name for GitHub. ok is false for anything else.
func ParseRepo(ref string) (Repo, bool) {
	if shorthand.MatchString(ref) && !strings.HasSuffix(ref, ".yml") && !strings.HasSuffix(ref, ".yaml") {
		ref = "https://github.com/" + ref
	}
	u, err := url.Parse(ref)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" && u.Scheme != "git" && u.Scheme != "file") {
		return Repo{}, false
	}
	if strings.HasSuffix(u.Path, ".git") {
		return Repo{URL: ref}, true
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if (u.Host != "github.com" && u.Host != "gitlab.com") || len(parts) < 2 {
		return Repo{}, false
	}
	repo := Repo{URL: fmt.Sprintf("https://%s/%s/%s", u.Host, parts[0], parts[1])}
	rest := parts[2:]
	if len(rest) > 0 && rest[0] == "-" {
		rest = rest[1:]
	}
	if len(rest) >= 2 && (rest[0] == "tree" || rest[0] == "blob") {
		repo.Branch = rest[1]
		repo.Path = path.Join(rest[2:]...)
	} else if len(rest) > 0 {
		return Repo{}, false
	}
	return repo, true
}

// Bounds of a clone: c9s takes topologies and configurations, not archives.
const (
	maxRepo     = 1 << 30
	maxRepoTime = 5 * time.Minute
)

// Clone makes a shallow clone of r in dir with the git program. Nothing in the
// repository is executed (hooks, filters, submodules), a server cannot redirect into a
// private network, and the clone is bounded in size (1 GiB) and time (5 minutes).
// Errors name no passwords.
func Clone(ctx context.Context, r Repo, dir string) error {
	return clone(ctx, r, dir, maxRepo)
}

func clone(ctx context.Context, r Repo, dir string, limit int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, maxRepoTime, fmt.Errorf("cloning took more than %s", maxRepoTime))
	defer cancel()
	config, address, err := settle(ctx, r.URL)
	if err != nil {
		return err
	}
	args := slices.Concat(config, []string{"clone", "--quiet", "--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules", "--template="})
	if r.Branch != "" {
		args = append(args, "--branch", r.Branch)
	}
	ctx, stop := watchSize(ctx, dir, limit)
	defer stop()
	_, err = git(ctx, "", append(args, "--", address, dir)...)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("git clone %s: %w", Redact(r.URL), cause)
	}
	if err == nil && sizeOf(dir) > limit { // it may have ended between two looks
		return tooLarge(r.URL, limit)
	}
	return err
}

// settle follows the redirects of a repository by http, and returns git's options that
// keep it at the address that was found, and that address. Where c9s cannot ask, git
// tries alone, and follows no redirect.
func settle(ctx context.Context, address string) (config []string, final string, err error) {
	config = []string{"-c", "http.followRedirects=false"}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return config, address, nil
	}
	const refs = "/info/refs"
	ask := *u
	ask.Path, ask.RawPath = strings.TrimSuffix(u.Path, "/")+refs, ""
	ask.RawQuery = "service=git-upload-pack"
	asking, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	g := newGuard(asTyped)
	resp, done, err := open(asking, ask.String(), g)
	var private *PrivateError
	switch {
	case errors.As(err, &private):
		return nil, "", fmt.Errorf("git clone %s: %w", Redact(address), err)
	case err != nil:
		return config, address, nil
	}
	defer done()
	at := *resp.Request.URL
	path, isRepo := strings.CutSuffix(at.Path, refs)
	if !isRepo {
		return config, address, nil
	}
	at.Path, at.RawPath, at.RawQuery = path, "", ""
	if at.Host == u.Host {
		at.User = u.User
	}
	if n := len(g.reached); n > 0 && len(g.proxies) == 0 {
		port := at.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[at.Scheme]
		}
		where := g.reached[n-1].Unmap().String()
		if g.reached[n-1].Unmap().Is6() {
			where = "[" + where + "]"
		}
		config = append(config, "-c", "http.curloptResolve="+at.Hostname()+":"+port+":"+where)
	}
	return config, at.String(), nil
}

// watchSize ends the context that it returns when dir holds more than limit bytes.
func watchSize(ctx context.Context, dir string, limit int64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if sizeOf(dir) > limit {
					cancel(tooLarge("", limit))
				}
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

func tooLarge(address string, limit int64) error {
	if address != "" {
		address = Redact(address) + ": "
	}
	return fmt.Errorf("%sthe repository has more than %d MiB", address, limit>>20)
}

func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil // files come and go as git works
	})
	return size
}

// Head returns the branch and the short hash of the repository around dir, or
// "none" for both if there is none.
func Head(ctx context.Context, dir string) (branch, hash string) {
	hash, err := git(ctx, dir, "rev-parse", "--short=7", "HEAD")
	if err != nil {
		return "none", "none"
	}
	branch, err = git(ctx, dir, "rev-parse", "--abbrev-ref", "HEAD")
	if err != nil || branch == "HEAD" {
		branch = "none"
	}
	return strings.ReplaceAll(branch, "/", "-"), hash
}

// safely are options that keep git from executing what a repository or a server says:
// hooks, file system monitors, filters (Git LFS fetches what a repository names), other
// protocols than those that ParseRepo takes.
var safely = []string{
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
	"-c", "filter.lfs.smudge=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false",
	"-c", "protocol.ext.allow=never", "-c", "transfer.bundleURI=false", "-c", "fetch.recurseSubmodules=false",
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	name := args[0]
	for i := 0; i < len(args); i += 2 {
		if name = args[i]; name != "-c" {
			break
		}
	}
	cmd := exec.CommandContext(ctx, "git", slices.Concat(safely, args)...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_LFS_SKIP_SMUDGE=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends its own children
	cmd.WaitDelay = 5 * time.Second
	var out, stderr capped
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		if msg := strings.TrimSpace(stderr.String()); msg != "" && ctx.Err() == nil {
			return "", fmt.Errorf("git %s: %s", name, Redact(msg))
		}
		return "", fmt.Errorf("git %s: %w", name, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// capped keeps the first 64 KiB of what is written to it.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	c.Buffer.Write(p[:min(len(p), max(0, 64<<10-c.Len()))])
	return len(p), nil
}
