package plan

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/google/go-cmp/cmp"
)

// countingPlanner counts how often it is asked.
type countingPlanner struct {
	Planner
	asked int
}

func (c *countingPlanner) Plan(ctx context.Context, l *lab.Lab, n *lab.Node) (*Plan, error) {
	c.asked++
	return c.Planner.Plan(ctx, l, n)
}

func TestCache(t *testing.T) {
	l := testLab("t")
	n := testNode(l, "n1", "linux", 1)
	counting := &countingPlanner{Planner: NewBuiltin(kinds.Builtin())}
	dir := t.TempDir()
	p := Cache(counting, dir)
	ask := func(want int) *Plan {
		t.Helper()
		got, err := p.Plan(context.Background(), l, n)
		if err != nil || counting.asked != want {
			t.Errorf("asked %d times, want %d: %v", counting.asked, want, err)
		}
		return got
	}
	first := ask(1)
	if diff := cmp.Diff(first, ask(1)); diff != "" {
		t.Errorf("the kept plan is another: %s", diff)
	}
	n.Env = map[string]string{"A": "1"}
	ask(2)
	testNode(l, "other", "linux", 1) // a node that n1 has nothing to do with
	n.Pos.Line += 7                  // a line added above it
	ask(2)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if err := os.WriteFile(f, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask(3)                 // what cannot be read is planned again
	n.Kind = "nokia_srsim" // a card twice: an error, which is not kept
	n.Components = []lab.Component{{Slot: "A"}, {Slot: "A"}}
	ask(4)
	ask(5)
}
