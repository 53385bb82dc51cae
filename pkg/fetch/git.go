package fetch

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path"
	"regexp"
	"strings"
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

// Clone makes a shallow clone of r in dir with the git program.
func Clone(ctx context.Context, r Repo, dir string) error {
	args := []string{"clone", "--quiet", "--depth=1"}
	if r.Branch != "" {
		args = append(args, "--branch", r.Branch)
	}
	args = append(args, "--", r.URL, dir)
	_, err := git(ctx, "", args...)
	return err
}

// Head returns the branch and the short hash of the repository around dir, or
// "none" for both where there is none.
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

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "GIT_TERMINAL_PROMPT=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if msg := strings.TrimSpace(stderr.String()); msg != "" {
			return "", fmt.Errorf("git %s: %s", args[0], msg)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
