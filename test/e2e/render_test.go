package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// What c9s renders of any lab is taken by the API server, every object.
func TestRenderedOutputIsAccepted(t *testing.T) {
	c := testcluster.Shared(t)
	c9s := buildC9s(t)
	ns := c.Namespace(t)
	for _, lab := range []string{"testdata/demo", "testdata/features"} {
		t.Run(lab, func(t *testing.T) { checkLab(t, c, ns, c9s, filepath.Join(repo, lab)) })
	}
	if testing.Short() {
		t.Log("the labs of the corpus are left out of a short run (-short)")
		return
	}
	t.Run("corpus", func(t *testing.T) { checkCorpus(t, c, ns, c9s) })
}

const repo = "../.."

func buildC9s(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "c9s")
	build := exec.Command("go", "build", "-o", program, "./cmd/c9s")
	build.Dir = repo
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building c9s: %v\n%s", err, out)
	}
	return program
}

// minRendered is how many labs of the corpus must render, as in internal/cli.
const minRendered = 235

// corpusLabs are the topologies of a collection of public labs next to the
// checkout. Its index names the file of each lab, for a folder can have several.
func corpusLabs(t *testing.T) []string {
	t.Helper()
	dir := filepath.Join(repo, "../shared/corpus")
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/corpus beside the checkout")
	}
	if err != nil {
		t.Fatal(err)
	}
	var labs []string
	for i, line := range strings.Split(strings.TrimSpace(string(index)), "\n") {
		fields := strings.Split(line, "\t")
		if i == 0 {
			continue
		}
		if len(fields) < 9 {
			t.Fatalf("INDEX.tsv line %d has %d fields", i+1, len(fields))
		}
		labs = append(labs, filepath.Join(dir, fields[0], filepath.FromSlash(fields[8])))
	}
	return labs
}

// checkCorpus goes through those labs.
func checkCorpus(t *testing.T, c *testcluster.Cluster, ns, c9s string) {
	labs := corpusLabs(t)
	rendered, refusedByC9s := 0, 0
	var mu sync.Mutex
	t.Run("labs", func(t *testing.T) {
		for _, lab := range labs {
			t.Run(filepath.Base(filepath.Dir(lab)), func(t *testing.T) {
				t.Parallel()
				did := checkLab(t, c, ns, c9s, lab)
				mu.Lock()
				defer mu.Unlock()
				if did {
					rendered++
				} else {
					refusedByC9s++
				}
			})
		}
	})
	t.Logf("%d labs rendered and checked; c9s itself refuses %d", rendered, refusedByC9s)
	if rendered < minRendered {
		t.Errorf("only %d labs of the corpus were rendered, want %d", rendered, minRendered)
	}
}

// checkLab reports whether c9s renders the lab at all. One that it rejects, with
// its reasons, is no matter of the API server.
func checkLab(t *testing.T, c *testcluster.Cluster, ns, c9s, lab string) bool {
	t.Helper()
	render := exec.Command(c9s, "render", lab, "--allow-missing", "--planner", "builtin", "--with-secrets")
	var stdout, stderr bytes.Buffer
	render.Stdout, render.Stderr = &stdout, &stderr
	if err := render.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || strings.Contains(stderr.String(), "panic:") {
			t.Errorf("c9s render: %v\n%s", err, stderr.String())
		}
		return false
	}
	objects, err := testcluster.ParseObjects(stdout.Bytes())
	if err != nil {
		t.Errorf("what c9s rendered is no YAML: %v", err)
		return true
	}
	checkObjects(t, c, ns, objects)
	return true
}

// checkObjects asks the API server about each object, a namespaced one in a
// namespace that is there. Nothing is kept, so that all labs can have the same.
func checkObjects(t *testing.T, c *testcluster.Cluster, ns string, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		if object.GetNamespace() != "" {
			object.SetNamespace(ns)
		}
		if err := c.DryRun(t.Context(), ns, object); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}
