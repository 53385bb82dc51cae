package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFolderOfAnEdit: removing one of 50 nodes moves the lines of most others, and changes in
// the rendered folder only its neighbours' files and the lab's.
func TestFolderOfAnEdit(t *testing.T) {
	const nodes, gone = 50, 20
	text := func(without int) string {
		var n, l strings.Builder
		for i := range nodes {
			next := (i + 1) % nodes
			if i != without {
				fmt.Fprintf(&n, "    n%d:\n      kind: linux\n      image: alpine\n", i)
			}
			if i != without && next != without {
				fmt.Fprintf(&l, "    - endpoints: [\"n%d:eth1\", \"n%d:eth2\"]\n", i, next)
			}
		}
		return "name: ring\ntopology:\n  nodes:\n" + n.String() + "  links:\n" + l.String()
	}
	dir := t.TempDir()
	topo, out := filepath.Join(dir, "ring.clab.yml"), filepath.Join(dir, "out")
	render := func(text string) map[string]string {
		t.Helper()
		if err := os.WriteFile(topo, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := callWith(t, nil, "render", topo, "-o", out); code != ExitOK {
			t.Fatalf("exit %d: %s", code, errs)
		}
		files := map[string]string{}
		err := filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			name, _ := filepath.Rel(out, path)
			files[name] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	before := render(text(-1))
	after := render(text(gone))
	var changed []string
	for name, data := range before {
		if after[name] != data {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	want := []string{".c9s-manifest", "kustomization.yaml", "lab.yaml", "nodes/n19.yaml", "nodes/n20.yaml", "nodes/n21.yaml"}
	if !slices.Equal(changed, want) || len(after) != len(before)-1 {
		t.Errorf("%d of %d files changed: %v, want %v", len(changed), len(before), changed, want)
	}
}
