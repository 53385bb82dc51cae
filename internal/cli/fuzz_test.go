package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzReadFolder holds that a folder that anybody may have edited gives its allocations
// or an error.
func FuzzReadFolder(f *testing.F) {
	f.Add([]byte("kind: ConfigMap\nmetadata: {name: c9s-allocations, annotations: {c9s.dev/lab-name: t}}\ndata: {allocations.json: '{\"version\":\"c9s.dev/allocations/v1\",\"pools\":{\"index\":{\"a\":\"1\"}}}'}\n"), []byte("kind: Secret\nmetadata: {name: c9s-wire-key}\ndata: {key: AAAA}\n"))
	f.Add([]byte("a: &a [*a]\n---\n"), []byte("\x00"))
	f.Fuzz(func(t *testing.T, lab, secrets []byte) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"lab.yaml": lab, "secrets/lab.yaml": secrets} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		state, err := readFolder(dir)
		if err == nil && state.lost && state.allocations != nil {
			t.Errorf("%q: allocations are there and lost", lab)
		}
	})
}
