package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever is wrong with a topology, what is looked at next to it neither breaks nor
// blames c9s: each line of a lab is omitted, cut short and misspelt in turn.
func TestBesideErrors(t *testing.T) {
	for _, name := range []string{"features/features.clab.yml", "isp/isp.clab.yml"} {
		topo := filepath.Join("..", "..", "testdata", name)
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(topo))); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, filepath.Base(topo))
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(data), "\n")
		refused := 0
		for i, line := range lines {
			for _, other := range []string{"", line[:len(line)/2] + "\n", strings.Replace(line, ": ", "x: ", 1), strings.Replace(line, ": ", ": !", 1), strings.Replace(line, "eth", "ath", 1)} {
				if other == line {
					continue
				}
				text := strings.Join(slices.Concat(lines[:i], []string{other}, lines[i+1:]), "")
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				code, out := validate(t, file)
				if code == ExitFailure {
					refused++
				}
				if code != ExitFailure && code != 0 || strings.Contains(out, "report this to c9s") {
					t.Errorf("%s, line %d as %q: exit code %d\n%s", name, i+1, other, code, out)
				}
			}
		}
		if refused < len(lines) {
			t.Errorf("%s: %d of some %d changes were refused", name, refused, 4*len(lines))
		}
	}
}

// A rejected link is none that a policy's rules could be for.
func TestRulesBesideRefusedLinks(t *testing.T) {
	for _, links := range []string{`["a:eth1", "x:eth1"]`, `["a:eth1", "a:eth1"]`, `["b:eth1", "c:eth1"]
    - endpoints: ["a:eth1", "b:eth1"]`} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"t.clab.yml": "name: t\ntopology:\n  defaults: {kind: linux, image: alpine}\n  nodes: {a: {}, b: {}, c: {}}\n  links:\n    - endpoints: " + links + "\n",
			"c9s.yaml":   "apiVersion: c9s.dev/v1\nkind: Policy\nprofiles:\n  - name: slow\n    links: [{datapath: vxlan}]\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if code, out := validate(t, filepath.Join(dir, "t.clab.yml")); code != ExitFailure || !strings.Contains(out, "error: ") || strings.Contains(out, "c9s.yaml") {
			t.Errorf("%s: exit code %d\n%s", links, code, out)
		}
	}
}

// Beside errors of the topology that of the planner is not told alone.
func TestErrorsBeforeThePlanner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.clab.yml")
	const text = "name: t\ntopology:\n  nodes:\n    a: {kind: linux}\n    b: {kind: linux, image: alpine}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, code := run(t, "validate", file, "--planner", "hooks", "--planner-path", filepath.Join(t.TempDir(), "none"))
	if code != ExitFailure || !strings.Contains(stderr, "image-missing") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// validate runs the command without its output on a terminal; what panics fails.
func validate(t *testing.T, file string) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	defer func() {
		if r := recover(); r != nil {
			code, out = -1, fmt.Sprint(r)
		}
	}()
	code = Main([]string{"validate", file, "--planner", "builtin"}, IO{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return code, stderr.String()
}
