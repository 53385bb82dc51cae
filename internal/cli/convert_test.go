package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/convert"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/pipeline"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/pkg/render"
)

const oldTopology = `name: t
topology:
  nodes:
    r1: # the switch
      kind: ceos
      image: ceos:4
      extras:
        ceos-copy-to-flash: [a.txt]
`

func TestConvert(t *testing.T) {
	dir := t.TempDir()
	topo := filepath.Join(dir, "t.clab.yml")
	for name, text := range map[string]string{topo: oldTopology, filepath.Join(dir, "a.txt"): "a\n"} {
		if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link.clab.yml")
	if err := os.Symlink("t.clab.yml", link); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "convert", topo)
	want := strings.ReplaceAll(`--- FILE
+++ FILE
@@ -4,5 +4,4 @@
     r1: # the switch
       kind: ceos
       image: ceos:4
-      extras:
-        ceos-copy-to-flash: [a.txt]
+      copy-to-flash: [a.txt]
`, "FILE", filepath.ToSlash(topo))
	if diff := cmp.Diff(want, out); diff != "" || code != ExitOK || errs != "" {
		t.Errorf("exit code %d\n%s\n%s", code, errs, diff)
	}
	if _, errs, code = run(t, "validate", topo, "--for", "0.81", "--planner", "builtin"); code != ExitFailure || !strings.Contains(errs, "8:29: error: extras.ceos-copy-to-flash is the old form of copy-to-flash, which containerlab 0.81 rejects [containerlab-release]") {
		t.Errorf("validate --for 0.81: exit code %d\n%s", code, errs)
	}
	if _, errs, code = run(t, "convert", link, "--write"); code != ExitOK || !strings.Contains(errs, "rewritten for containerlab 0.81") {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	got, err := os.ReadFile(topo)
	if err != nil || string(got) != strings.Replace(oldTopology, "      extras:\n        ceos-copy-to-flash", "      copy-to-flash", 1) {
		t.Errorf("%v\n%s", err, got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if info, err := os.Stat(topo); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if out, errs, code = run(t, "convert", topo); code != ExitOK || out != "" || !strings.Contains(errs, "nothing to rewrite") {
		t.Errorf("a second time: exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code = run(t, "validate", topo, "--for", "0.80", "--planner", "builtin"); code != ExitFailure || !strings.Contains(errs, "containerlab 0.80 does not have the key copy-to-flash (since 0.81)") {
		t.Errorf("validate --for 0.80: exit code %d\n%s", code, errs)
	}
}

func TestConvertRejects(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"template.clab.yml": "name: t\ntopology:\n  nodes:\n    {{ range seq 1 2 }}r{{ . }}: {kind: linux, image: a}\n    {{ end }}",
		"broken.clab.yml":   "name: [\n",
		"faulty.clab.yml":   strings.Replace(oldTopology, "image: ceos:4", "kinds: x", 1),
		"two.clab.yml":      "name: t\ntopology:\n  nodes:\n    a: {kind: nokia_srsim, image: a, license: l, components: [{slot: A, sfm: x}, {slot: B, sfm: y}]}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"template.clab.yml"}, ExitFailure, "is a template, and only plain YAML can be rewritten"},
		{[]string{"broken.clab.yml"}, ExitFailure, "[yaml-syntax]"},
		{[]string{"two.clab.yml"}, ExitFailure, "the cards have several switch fabric modules"},
		{[]string{"faulty.clab.yml", "--write"}, ExitFailure, "[unknown-field]"},
		{[]string{"two.clab.yml", "--to", "0.79"}, ExitUsage, "use 0.80 or 0.81"},
		{[]string{"-", "--write"}, ExitUsage, "only a topology in a file of this machine can be written"},
	} {
		var out, errs bytes.Buffer
		code := Main(append([]string{"convert"}, c.args...), IO{In: strings.NewReader(oldTopology), Out: &out, Err: &errs})
		if code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: exit code %d\n%s", c.args, code, errs.String())
		}
	}
}

// source is the place of an object in the topology.
var source = regexp.MustCompile(`(?m)(c9s\.dev/source: [^\s:]*|^# [^\s:]*):\d+`)

// switchFabric matches the switch fabric in the environment of a control card.
var switchFabric = regexp.MustCompile(`(?m)^ +- (?:\{name: NOKIA_SROS_SFM, value: .*\}|name: NOKIA_SROS_SFM\n +value: .*)\n|"NOKIA_SROS_SFM": ".*"`)

// TestConvertCorpus rewrites every public lab for containerlab 0.81, which must accept
// it then; it renders to the same objects.
func TestConvertCorpus(t *testing.T) {
	labs := corpusLabs(t, corpusDir(t))
	changed := 0
	for _, id := range slices.Sorted(maps.Keys(labs)) {
		in := pipeline.Input{Ref: labs[id], AllowMissing: true}
		c, err := pipeline.Compile(t.Context(), in)
		if err != nil {
			t.Fatal(id, err)
		}
		defer c.Close()
		if c.Source.IsTemplate() || c.File == nil || hasErrors(c.Diags) {
			continue
		}
		out, err := c.Convert(t.Context(), in, "0.81")
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if hasErrors(out.Diags) {
			t.Errorf("%s: containerlab 0.81 does not accept it: %v", id, out.Diags)
		}
		if out.Text == string(c.Source.Data) {
			continue
		}
		changed++
		t.Logf("%s changes", id)
		before, after := objects(t, c), objects(t, out.Compiled)
		if slices.ContainsFunc(out.Diags, func(d diag.Diagnostic) bool { return d.Code == convert.CodeChanged }) {
			before, after = switchFabric.ReplaceAllString(before, ""), switchFabric.ReplaceAllString(after, "")
		}
		if before != after {
			t.Errorf("%s renders to other objects: -before +after\n%s", id, cmp.Diff(before, after))
		}
	}
	if changed < 3 {
		t.Errorf("only %d labs change", changed)
	}
}

// objects renders a topology with the catalogue, without the places in its file.
func objects(t *testing.T, c *pipeline.Compiled) string {
	t.Helper()
	planner, err := pipeline.ChoosePlanner("builtin", "", c.Kinds)
	if err != nil {
		t.Fatal(err)
	}
	out, diags, err := c.Render(t.Context(), pipeline.RenderOptions{
		Options: render.Options{Image: "c9s:test", Version: "test"}, AllowMissing: true,
		Plan: func(ctx context.Context, only map[string]bool) (map[string]*plan.Plan, []diag.Diagnostic, error) {
			return c.Plan(ctx, planner, only)
		},
	})
	if err != nil || out == nil {
		t.Fatalf("%s: %v %v", c.Source.Name, err, diags)
	}
	var text bytes.Buffer
	if err := manifest.WriteStream(&text, out.Objects, manifest.Format("yaml")); err != nil {
		t.Fatal(err)
	}
	return source.ReplaceAllString(text.String(), "$1")
}

// TestPage: a lab with very many faults prints a page, with the errors first.
func TestPage(t *testing.T) {
	t.Chdir(t.TempDir())
	var topo strings.Builder
	topo.WriteString("name: t\ntopology:\n  nodes:\n")
	for i := range 300 {
		fmt.Fprintf(&topo, "    r%d: {kind: linux, image: a, restart-policy: \"no\"}\n", i)
	}
	for i := range 300 {
		fmt.Fprintf(&topo, "    n%d: {kind: linux}\n", i)
	}
	topo.WriteString("    last: {kind: nothing}\n")
	if err := os.WriteFile("t.clab.yml", []byte(topo.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := run(t, "validate", "t.clab.yml", "--planner", "builtin")
	if n := strings.Count(errs, "\n"); code != ExitFailure || n > 40 {
		t.Errorf("exit code %d, %d lines\n%s", code, n, errs)
	}
	for _, want := range []string{
		`unknown kind "nothing"`,
		`node "n0" has no image`,
		`restart-policy "no" of node "r0"`, `(and for 299 more nodes: r1, r2, r3, r4, ...)`,
		"... and 296 errors, 0 warnings; c9s validate --all prints all",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("it does not say %q:\n%s", want, errs)
		}
	}
	_, errs, _ = run(t, "validate", "t.clab.yml", "--planner", "builtin", "--all")
	if n := strings.Count(errs, "[image-missing]"); n != 300 {
		t.Errorf("--all prints %d of 300", n)
	}
	if n := strings.Count(errs, "restart-policy"); n != 300 {
		t.Errorf("--all prints %d warnings of 300", n)
	}
}
