package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// TestWriteFolderLinks: no symbolic link leaves the folder.
func TestWriteFolderLinks(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "nodes")); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteFolder(dir, map[string][]byte{"nodes/a.yaml": []byte(fileHeader)}); err == nil {
		t.Error("written through a link")
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Error("something is outside")
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, contract.FolderList), []byte("00  ../victim\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteFolder(dir, nil); err == nil {
		t.Error("a manifest that names files outside is believed")
	}
}
