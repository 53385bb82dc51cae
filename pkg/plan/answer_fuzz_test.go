package plan

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// FuzzAnswer: whatever a planner program writes is refused, or is a plan for the node
// that was asked for, with files in the node's folder and steps that can run.
func FuzzAnswer(f *testing.F) {
	const head = `{"version":"` + ProtocolVersion + `","planner":"hooks/0.79.0",`
	for _, plan := range []string{
		`"plan":{"version":"` + Version + `","planner":"hooks","node":"r1","kind":"linux","files":[{"path":"a","mode":"0644"}],` +
			`"containers":[{"name":"r1","image":"a","mounts":[{"path":"a","target":"/a"}]}],"steps":[{"run":{"argv":["a"]}}]}}`,
		`"plan":{"version":"` + Version + `","planner":"hooks","node":"r1","files":[{"path":"../a"}],"steps":[{"run":{"argv":[]}}]}}`,
		`"plan":{"version":"` + Version + `","planner":"hooks","node":"r2"}}`,
		`"error":"no"}`,
		`"kinds":["linux"],"last":true}`,
	} {
		f.Add([]byte(head + plan))
	}
	f.Add([]byte(`{"version":"2"}{}`))
	l := &lab.Lab{Files: map[lab.Digest][]byte{}}
	n := &lab.Node{Name: "r1"}
	f.Fuzz(func(t *testing.T, data []byte) {
		answer, problem := decodeAnswer(data)
		if (answer == nil) == (problem == nil) {
			t.Fatalf("answer %v, problem %v", answer, problem)
		}
		if problem != nil || checkAnswer(answer, l, n) != nil {
			return
		}
		p := answer.Plan
		if p.Node != n.Name {
			t.Errorf("it is for %q", p.Node)
		}
		for _, file := range p.Files {
			if rel, err := filepath.Rel("/node", filepath.Join("/node", file.Path)); err != nil || rel == "." || strings.HasPrefix(rel, "../") || rel == ".." {
				t.Errorf("file %q is at %s", file.Path, rel)
			}
		}
		for _, s := range p.Steps {
			var argv []string
			switch {
			case s.Run != nil:
				argv = s.Run.Argv
			case s.Wait != nil:
				argv = s.Wait.Argv
			case s.CLI != nil:
				argv = s.CLI.Argv
			default:
				continue
			}
			if len(argv) == 0 || argv[0] == "" {
				t.Errorf("the step %+v has no command", s)
			}
		}
	})
}
