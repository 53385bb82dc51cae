package images

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLayerOfATree(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(
		os.MkdirAll(filepath.Join(root, "etc"), 0o755),
		os.WriteFile(filepath.Join(root, "etc/a"), []byte("text"), 0o640),
		os.Link(filepath.Join(root, "etc/a"), filepath.Join(root, "etc/b")),
		os.Symlink("a", filepath.Join(root, "etc/c")),
	); err != nil {
		t.Fatal(err)
	}
	want := map[string]byte{"etc/": tar.TypeDir, "etc/a": tar.TypeReg, "etc/b": tar.TypeLink, "etc/c": tar.TypeSymlink}
	if os.Geteuid() == 0 { // only root makes devices
		if err := unix.Mknod(filepath.Join(root, "etc/gone"), unix.S_IFCHR, 0); err != nil {
			t.Fatal(err)
		}
		want["etc/.wh.gone"] = tar.TypeReg
	}
	layer := filepath.Join(t.TempDir(), "layer.tar")
	if err := writeTree(layer, root); err != nil {
		t.Fatal(err)
	}
	got := readTar(t, layer)
	for name, kind := range want {
		if got[name] != kind {
			t.Errorf("%s: got type %q, want %q", name, got[name], kind)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d entries, want %d", len(got), len(want))
	}
}

func TestLayerOfFiles(t *testing.T) {
	layer := filepath.Join(t.TempDir(), "layer.tar")
	if err := writeFiles(layer, map[string]file{"usr/bin/x": {mode: 0o755, text: []byte("x")}, "usr/bin/y": {link: "x"}}); err != nil {
		t.Fatal(err)
	}
	got := readTar(t, layer)
	want := map[string]byte{"usr/": tar.TypeDir, "usr/bin/": tar.TypeDir, "usr/bin/x": tar.TypeReg, "usr/bin/y": tar.TypeSymlink}
	for name, kind := range want {
		if got[name] != kind {
			t.Errorf("%s: got type %q, want %q", name, got[name], kind)
		}
	}
}

func readTar(t *testing.T, path string) map[string]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries := map[string]byte{}
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		entries[header.Name] = header.Typeflag
	}
}
