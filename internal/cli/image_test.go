package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/render"
)

// TestChosenImage: the flag wins over the environment, which wins over the policy.
func TestChosenImage(t *testing.T) {
	dir := t.TempDir()
	topo := filepath.Join(dir, "t.clab.yml")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("t.clab.yml", "name: t\ntopology:\n  nodes:\n    r1: {kind: linux, image: alpine}\n")
	rendered := func(env []string, args ...string) string {
		var out, errs bytes.Buffer
		if code := Main(append([]string{"render", topo, "--planner", "builtin"}, args...), IO{Out: &out, Err: &errs, Env: env}); code != ExitOK {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		return out.String()
	}
	check := func(text, want string) {
		t.Helper()
		if n := strings.Count(text, "image: "+want+"\n"); n < 2 { // sidecar and controller
			t.Errorf("%s is the image of %d containers", want, n)
		}
	}
	check(rendered(nil), defaultImage())
	write("c9s.yaml", "apiVersion: c9s.dev/v1\nkind: Policy\nimage: policy/c9s:1\n")
	check(rendered(nil), "policy/c9s:1")
	env := []string{"A=b", "C9S_IMAGE=env/c9s:1"}
	check(rendered(env), "env/c9s:1")
	check(rendered(env, "--image", "flag/c9s:1"), "flag/c9s:1")
	check(rendered([]string{"C9S_IMAGE="}), "policy/c9s:1")
}

// TestRunningImage: the image of a running lab stays if this version deployed it. Builds
// without a version, or of a checkout with changes, are not the same version.
func TestRunningImage(t *testing.T) {
	before := Version
	t.Cleanup(func() { Version = before })
	for version, want := range map[string]string{"dev": "", "v1.2-3-gabc-dirty": "", "v1.2": "mine/c9s:1", "0123abc": "mine/c9s:1"} {
		Version = version
		if got := runningImage(cluster.Existing{Version: version, Image: "mine/c9s:1"}, nil); got != want {
			t.Errorf("version %s: %q, want %q", version, got, want)
		}
	}
	Version = "1.0"
	mapped := []render.ImageRule{{From: "ghcr.io/*", To: "mirror/*"}}
	for name, c := range map[string]struct {
		existing cluster.Existing
		rules    []render.ImageRule
		want     string
	}{
		"no lab":        {cluster.Existing{}, nil, ""},
		"this version":  {cluster.Existing{Version: Version, Image: "mine/c9s:1"}, nil, "mine/c9s:1"},
		"other version": {cluster.Existing{Version: "0.1", Image: "mine/c9s:1"}, nil, ""},
		"mapped":        {cluster.Existing{Version: Version, Image: "mine/c9s:1"}, mapped, ""},
		"mapped others": {cluster.Existing{Version: Version, Image: "mine/c9s:1"}, []render.ImageRule{{From: "ceos*", To: "mirror/*"}}, "mine/c9s:1"},
	} {
		if got := runningImage(c.existing, c.rules); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestForeignImage: a fetched topology does not choose the c9s image, and does not mount
// Secrets of the namespace.
func TestForeignImage(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "lab.git")
	for name, text := range map[string]string{
		"t.clab.yml": nodeWith(""),
		"c9s.yaml":   "apiVersion: c9s.dev/v1\nkind: Policy\nimage: stranger/c9s:1\nprofiles: [{name: p, set: {expose: {type: None}, files: [{path: /x, secret: of-others}]}}]\n",
	} {
		if err := os.MkdirAll(repo, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-qm", "x"}} {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	out, errs, code := callWith(t, os.Environ(), "render", "file://"+repo)
	if code != ExitOK || !strings.Contains(errs, "policy-image-ignored") || strings.Contains(out, "stranger/c9s") || !strings.Contains(out, defaultImage()) {
		t.Errorf("exit %d, stderr:\n%s", code, errs)
	}
	if !strings.Contains(errs, "c9s.yaml:4:") || !strings.Contains(errs, "policy-files-ignored") || strings.Contains(out, "of-others") {
		t.Errorf("a Secret of the namespace is mounted: %s", errs)
	}
	if out, errs, code := callWith(t, os.Environ(), "render", "file://"+repo, "--trust"); code != ExitOK || !strings.Contains(out, "of-others") {
		t.Errorf("--trust: exit %d, stderr:\n%s", code, errs)
	}
}
