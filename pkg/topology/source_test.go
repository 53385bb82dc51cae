package topology

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/fetch"
)

const tiny = "name: tiny\ntopology:\n  nodes:\n    r1: {kind: linux, image: alpine:3}\n"

func TestOpen(t *testing.T) {
	one, two, none := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range []string{filepath.Join(one, "a.clab.yml"), filepath.Join(one, "other.yml"), filepath.Join(two, "a.clab.yml"), filepath.Join(two, "b.clab.yaml")} {
		if err := os.WriteFile(name, []byte(tiny), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/lab.clab.yml" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(tiny))
	}))
	defer server.Close()
	tests := []struct{ ref, wantName, wantErr string }{
		{filepath.Join(one, "other.yml"), "other.yml", ""},
		{one, "a.clab.yml", ""},
		{two, "", "several topologies"},
		{none, "", "there is no *.clab.yml"},
		{"-", "stdin.clab.yml", ""},
		{server.URL + "/lab.clab.yml", "lab.clab.yml", ""},
		{server.URL + "/gone.clab.yml", "", "404"},
		{"s3://bucket/lab.clab.yml", "", "S3 is not supported"},
		{filepath.Join(none, "missing.yml"), "", "no such file"},
	}
	for _, tt := range tests {
		src, err := Open(t.Context(), tt.ref, strings.NewReader(tiny))
		switch {
		case tt.wantErr != "":
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("Open(%q): %v, want %q", tt.ref, err, tt.wantErr)
			}
		case err != nil:
			t.Errorf("Open(%q): %v", tt.ref, err)
		case src.Base != tt.wantName || string(src.Data) != tiny:
			t.Errorf("Open(%q) = %q with %d bytes", tt.ref, src.Base, len(src.Data))
		}
	}
}

func TestOpenGitRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	repo := filepath.Join(dir, "lab.git")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.MkdirAll(filepath.Join(repo, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, "lab.clab.yml"), []byte(tiny), 0o644); err != nil {
		t.Fatal(err)
	}
	run("init", "--quiet")
	run("add", ".")
	run("commit", "--quiet", "-m", "lab")
	src, err := Open(t.Context(), "file://"+repo, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(src.Data) != tiny || src.Dir == "" {
		t.Errorf("%q in %q", src.Data, src.Dir)
	}
	src.Close()
	if _, err := os.Stat(src.Dir); err == nil {
		t.Error("the clone is still there after Close")
	}
	if _, err := Open(t.Context(), "file://"+filepath.Join(dir, "none.git"), nil); err == nil {
		t.Error("a repository that is not there gives no error")
	}
}

// endless is a file that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// What never comes or never ends is not waited for, nor kept.
func TestOpenEndless(t *testing.T) {
	if _, err := Open(t.Context(), "-", endless{}); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("an endless standard input: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe.clab.yml")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here:", err)
	}
	silent, other := io.Pipe()
	defer other.Close()
	for name, ref := range map[string]string{"standard input": "-", "a named pipe": pipe} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := Open(ctx, ref, silent); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s that nobody writes to: %v", name, err)
		}
		cancel()
	}
}

// TestPasswordOfARepository: neither diagnostics nor errors name it.
func TestPasswordOfARepository(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.clab.yml"), []byte(tiny), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	repo := fetch.Repo{URL: "https://user:sekret@example.com/a/b.git"}
	src, err := inRepo(dir, repo)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if want := "https://…@example.com/a/b.git/t.clab.yml"; src.Name != want {
		t.Errorf("the topology is called %s, want %s", src.Name, want)
	}
	for _, repo.Path = range []string{"empty", "none", "../..", "t.clab.yml/x"} {
		if _, err := inRepo(dir, repo); err == nil && repo.Path != "../.." || err != nil && strings.Contains(err.Error(), "sekret") {
			t.Errorf("%s: %v", repo.Path, err)
		}
	}
}
