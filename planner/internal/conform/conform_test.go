package conform_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/planner/internal/conform"
	"github.com/c9s-lab/c9s/planner/internal/hooks"
	"github.com/c9s-lab/c9s/planner/internal/program"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "planner" {
		hooks.ProgramArgs = []string{"planner"}
		os.Exit(program.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestEveryKindAgrees plans every kind with both planners.
func TestEveryKindAgrees(t *testing.T) {
	hooks.ProgramArgs = []string{"planner"}
	var out bytes.Buffer
	if err := conform.Run(&out, nil); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if !strings.HasSuffix(out.String(), "59 kinds agree, 0 differ\n") {
		t.Error("the planners differ in what is not meant to differ")
	}
}
