package fetch

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
}

// TestCloneExecutesNothing has hooks of the user's own templates, a filter that a
// repository asks for, and a submodule.
func TestCloneExecutesNothing(t *testing.T) {
	home := t.TempDir()
	mark := filepath.Join(home, "executed")
	script := "#!/bin/sh\ntouch " + mark + "\ncat\n"
	for name, text := range map[string]string{
		"template/hooks/post-checkout": script, "hooks/post-checkout": script, "filter": script,
		".gitconfig": "[init]\ntemplateDir = " + home + "/template\n[core]\nhooksPath = " + home + "/hooks\n[filter \"lfs\"]\nsmudge = " + home + "/filter\nrequired = true\n",
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
