package fetch

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// repository makes a Git repository with files, and returns its file URL.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lab.git")
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "x"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return "file://" + dir
}

func TestCloneIsBounded(t *testing.T) {
	noise := make([]byte, 2<<20)
	_, _ = rand.Read(noise) // never fails
	url := repository(t, map[string]string{"big": string(noise)})
	err := clone(t.Context(), Repo{URL: url}, filepath.Join(t.TempDir(), "x"), 1<<20)
	if err == nil || !strings.Contains(err.Error(), "more than 1 MiB") {
		t.Errorf("a repository of 2 MiB: %v", err)
	}
	if err := clone(t.Context(), Repo{URL: url}, filepath.Join(t.TempDir(), "x"), 64<<20); err != nil {
		t.Error(err)
	}
	// A clone that goes on and on ends as soon as it is too large.
	dir := t.TempDir()
	ctx, stop := watchSize(t.Context(), dir, 1<<20)
	defer stop()
	if err := os.WriteFile(filepath.Join(dir, "pack"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
		if err := context.Cause(ctx); !strings.Contains(err.Error(), "more than 1 MiB") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the size is not watched")
	}
}

// TestCloneRedirects has servers that would lead Git into a private network.
func TestCloneRedirects(t *testing.T) {
	var asked, followed atomic.Int32
	victim := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	defer victim.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasPrefix(r.UserAgent(), "git/") { // c9s, which asked before, was let stay
			http.Redirect(w, r, victim.URL+r.URL.Path, http.StatusFound)
		}
	}))
	defer server.Close()
	if err := Clone(t.Context(), Repo{URL: server.URL + "/x.git"}, filepath.Join(t.TempDir(), "x")); err == nil || asked.Load() < 2 {
		t.Errorf("the server was asked %d times: %v", asked.Load(), err)
	}
	if n := followed.Load(); n > 0 {
		t.Errorf("git followed %d redirects", n)
	}
	// Git connects to the address that c9s has judged, whatever the name resolves to then.
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	config, final, err := settle(t.Context(), "http://localhost:"+port+"/x.git")
	if want := "http.curloptResolve=localhost:" + port + ":127.0.0.1"; err != nil || final != "http://localhost:"+port+"/x.git" ||
		!slices.Contains(config, want) && !slices.Contains(config, "http.curloptResolve=localhost:"+port+":[::1]") {
		t.Errorf("git gets %q and %s, %v, want %s", config, final, err, want)
	}
	asked.Store(0)
	resolveAll(t)
	var private *PrivateError
	if err := Clone(t.Context(), Repo{URL: "http://user:sekret@rebinding.example.com:" + port + "/x.git"}, filepath.Join(t.TempDir(), "x")); !errors.As(err, &private) || asked.Load() > 0 || strings.Contains(err.Error(), "sekret") {
		t.Errorf("a name led to this machine: %v, asked %d times", err, asked.Load())
	}
}

// TestCloneExecutesNothing has hooks of the user's own templates, a filter that a
// repository asks for, and a submodule.
func TestCloneExecutesNothing(t *testing.T) {
	home := t.TempDir()
	mark := filepath.Join(home, "executed")
	script := "#!/bin/sh\ntouch " + mark + "\ncat\n"
	for name, text := range map[string]string{
		"template/hooks/post-checkout": script, "hooks/post-checkout": script, "filter": script,
		".gitconfig": "[init]\ntemplateDir = " + home + "/template\n[core]\nhooksPath = " + home + "/hooks\nfsmonitor = " + home + "/filter\n[filter \"lfs\"]\nsmudge = " + home + "/filter\nprocess = " + home + "/filter\nrequired = true\n",
	} {
		full := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	url := repository(t, map[string]string{
		".gitattributes": "*.bin filter=lfs\n", "x.bin": "x", ".gitmodules": "[submodule \"s\"]\npath = s\nurl = ext::sh -c touch% " + mark + "\n",
	})
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", home)
	dir := filepath.Join(t.TempDir(), "x")
	if err := Clone(t.Context(), Repo{URL: url}, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the clone executed a program")
	}
	if data, err := os.ReadFile(filepath.Join(dir, "x.bin")); err != nil || string(data) != "x" {
		t.Errorf("%q, %v", data, err)
	}
}
