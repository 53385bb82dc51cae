// Package plantest has labs with what every planner must make of them. The planners'
// tests run it, each with its own planner.
package plantest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/plan"
)

// Command runs c9s with an environment, and returns what it printed to standard output
// and standard error.
type Command func(env []string, args ...string) (out, errs string)

// lab is a topology with files beside it and what its plans must be.
type lab struct {
	name string
	topo string
	// files lie beside the topology; "c9s.yaml" is its policy.
	files map[string]string
	env   []string
	// says is every diagnostic: severity, message and code in their order, without
	// positions of the topology and hints.
	says []string
	// look checks the plans and all that "c9s plan" printed.
	look func(t *testing.T, r *result)
}

// result is what "c9s plan" printed.
type result struct {
	plans map[string]*plan.Plan
	out   string
	errs  string
	// dir has the lab; run runs c9s on it again.
	dir string
	run func(args ...string) (out, errs string)
}

// Run plans the labs with the planner that the flags choose.
func Run(t *testing.T, c9s Command, flags ...string) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, l := range slices.Concat(savedLabs, environmentLabs, deviceLabs, diagnosticLabs, keyLabs, newerLabs, []lab{everyKind()}) {
		t.Run(l.name, func(t *testing.T) { l.check(t, c9s, flags) })
	}
}

func (l *lab) check(t *testing.T, c9s Command, flags []string) {
	dir := t.TempDir()
	topo := filepath.Join(dir, "t.clab.yml")
	for name, text := range l.files {
		write(t, filepath.Join(dir, name), text)
	}
	write(t, topo, l.topo)
	r := &result{dir: dir, plans: map[string]*plan.Plan{}}
	r.run = func(args ...string) (string, string) {
		return c9s(l.env, append(append([]string{args[0], topo}, args[1:]...), flags...)...)
	}
	r.out, r.errs = r.run("plan", "-o", "json")
	var list []*plan.Plan
	if r.out != "" {
		if err := json.Unmarshal([]byte(r.out), &list); err != nil {
			t.Fatalf("%v\n%s", err, r.errs)
		}
	}
	for _, p := range list {
		r.plans[p.Node] = p
	}
	if got := r.diagnostics(); !slices.Equal(got, l.says) {
		t.Errorf("it says\n\t%s\nwant\n\t%s\nin all\n%s", strings.Join(got, "\n\t"), strings.Join(l.says, "\n\t"), r.errs)
	}
	if l.look != nil {
		l.look(t, r)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// diagnostics are the lines that begin one, without the topology's path and line.
func (r *result) diagnostics() []string {
	var out []string
	for line := range strings.Lines(r.errs) {
		line = strings.TrimSpace(line)
		where, what, ok := strings.Cut(line, ": warning: ")
		severity := "warning: "
		if !ok {
			if where, what, ok = strings.Cut(line, ": error: "); !ok {
				continue
			}
			severity = "error: "
		}
		if base := filepath.Base(where); !strings.HasPrefix(base, "t.clab.yml") {
			severity = base + ": " + severity
		}
		out = append(out, severity+strings.ReplaceAll(what, r.dir, "DIR"))
	}
	return out
}

// file is a file of a node's plan; a node without it fails the test.
func (r *result) file(t *testing.T, node, path string) *plan.File {
	t.Helper()
	p := r.plan(t, node)
	for i := range p.Files {
		if p.Files[i].Path == path {
			return &p.Files[i]
		}
	}
	t.Fatalf("the plan of %s has no file %s", node, path)
	return nil
}

func (r *result) plan(t *testing.T, node string) *plan.Plan {
	t.Helper()
	p := r.plans[node]
	if p == nil {
		t.Fatalf("there is no plan of %s:\n%s", node, r.errs)
	}
	return p
}

// text is all that a plan types, writes and runs, in one text.
func text(p *plan.Plan) string {
	var out []string
	for _, f := range p.Files {
		out = append(out, string(f.Content))
	}
	for _, s := range p.Steps {
		switch {
		case s.Write != nil:
			out = append(out, string(s.Write.Content))
		case s.Run != nil:
			out = append(out, s.Run.Argv...)
		case s.Wait != nil:
			out = append(out, s.Wait.Argv...)
		case s.CLI != nil:
			out = append(append(out, s.CLI.Argv...), s.CLI.Lines...)
		}
	}
	return strings.Join(out, "\n")
}
