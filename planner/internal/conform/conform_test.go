package conform_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/internal/cli"
	"github.com/c9s-lab/c9s/pkg/plan"
	"github.com/c9s-lab/c9s/planner/internal/conform"
	"github.com/c9s-lab/c9s/planner/internal/hooks"
	"github.com/c9s-lab/c9s/planner/internal/program"
	"github.com/google/go-cmp/cmp"
)

// TestMain is the planner program or c9s when it is started under the name of one. The
// planner's argument "at" makes it one of another time of day.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == commandName {
		os.Exit(asCommand())
	}
	if filepath.Base(os.Args[0]) == plan.ProgramName {
		if len(os.Args) == 3 && os.Args[1] == "at" {
			planAt(os.Args[2])
		}
		os.Exit(program.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func programPath(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), plan.ProgramName)
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// TestEveryKindAgrees plans every kind in all its forms with both planners.
func TestEveryKindAgrees(t *testing.T) {
	var out bytes.Buffer
	if err := conform.Run(&out, programPath(t), nil); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if !strings.HasSuffix(out.String(), "59 kinds agree, 0 differ\n") {
		t.Error("the planners differ in what is not meant to differ")
	}
}

// TestLinuxLabsRenderTheSame: for labs of kind linux only, the objects are the same
// whoever planned, but for the planner's name. They are compared as JSON: where YAML
// breaks its lines depends on the length of that name.
func TestLinuxLabsRenderTheSame(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	topologies := []string{"../../../testdata/demo/demo.clab.yml"}
	const corpus = "../../../../shared/corpus"
	if _, err := os.Stat(corpus); err != nil {
		t.Log("the corpus of public labs is not beside this checkout: only testdata/demo is compared")
	} else {
		topologies = append(topologies, corpus+"/013-containerlab-frr01/frr01.clab.yml", corpus+"/075-containerlab-stages/stages.clab.yml", corpus+"/054-containerlab-01-linux-nodes/01-linux-nodes.clab.yml")
	}
	program := programPath(t)
	for _, topo := range topologies {
		var streams [2]string
		for i, planner := range []string{"builtin", "hooks"} {
			var out, errs bytes.Buffer
			world := cli.IO{Out: &out, Err: &errs}
			if code := cli.Main([]string{"render", topo, "--format", "json", "--allow-missing", "--planner", planner, "--planner-path", program}, world); code != 0 {
				t.Fatalf("%s with %s:\n%s", topo, planner, errs.String())
			}
			streams[i] = strings.ReplaceAll(out.String(), "hooks/"+hooks.Version, "builtin/"+hooks.Version)
		}
		if diff := cmp.Diff(streams[0], streams[1]); diff != "" {
			t.Errorf("%s: -builtin +hooks\n%s", topo, diff)
		}
	}
}
