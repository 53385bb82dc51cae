package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a", "b")
	for _, text := range []string{"one", "two"} {
		if err := Write(file, []byte(text), 0o640, 0o700); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != text {
			t.Errorf("%q %v", got, err)
		}
	}
	for name, want := range map[string]os.FileMode{file: 0o640, filepath.Dir(file): 0o700 | os.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

// A failure leaves the old file and no other one.
func TestCopyFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := Write(file, []byte("old"), 0o600, 0o700); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := Copy(file, 0o600, func(w io.Writer) error { _, _ = w.Write([]byte("half")); return broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if got, _ := os.ReadFile(file); string(got) != "old" {
		t.Errorf("the file is %q", got)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder has %v", entries)
	}
}

// What lies in the file's place is replaced and not followed.
func TestCopyOverLinkAndFolder(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	link, folder := filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	if err := errors.Join(os.Symlink(target, link), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{link, folder} {
		if err := Write(file, []byte("new"), 0o600, 0o700); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s is %v, %v", file, info.Mode(), err)
		}
	}
	if got, _ := os.ReadFile(target); string(got) != "untouched" {
		t.Errorf("the link's target is %q", got)
	}
}

// TestWriteAll: a file that cannot be replaced leaves all others as they were.
func TestWriteAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	files := map[string][]byte{"a": []byte("1"), "b": []byte("2")}
	if err := WriteAll(dir, files, 0o600, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "b")), os.Mkdir(filepath.Join(dir, "b"), 0o700)); err != nil {
		t.Fatal(err)
	}
	files["a"] = []byte("3")
	if err := WriteAll(dir, files, 0o600, 0o700); err == nil {
		t.Error("a folder was replaced")
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "a")); string(got) != "1" {
		t.Errorf("a is %q", got)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("the folder has %v", entries)
	}
}
