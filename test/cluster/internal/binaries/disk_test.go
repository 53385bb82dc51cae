package binaries

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSize(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"x": 1000, "a/y": 200, "a/b/z": 34} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, n), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "x"), filepath.Join(dir, "a", "link")); err != nil {
		t.Fatal(err)
	}
	if got := size(dir); got != 1234 {
		t.Errorf("%d bytes, want 1234", got)
	}
	if got := size(filepath.Join(dir, "none")); got != 0 {
		t.Errorf("a folder that is not there has %d bytes", got)
	}
	if got := gigabytes(1_560_000_000); got != "1.6 GB" {
		t.Errorf("got %s", got)
	}
}
