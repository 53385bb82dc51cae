package markers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Several programs change one file at the same time: nothing is lost, and the rest of the file
// stays.
func TestUpdate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	set := func(body string) {
		var group sync.WaitGroup
		for i := range 50 {
			group.Go(func() {
				err := Update(file, func(text string) string { return Set(text, fmt.Sprint("block ", i), body, false) })
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	set("127.1.0.1 r1")
	text, err := os.ReadFile(file)
	if want := len("127.0.0.1 localhost\n") + 10*len("# BEGIN block 0\n127.1.0.1 r1\n# END block 0\n") + 40*len("# BEGIN block 10\n127.1.0.1 r1\n# END block 10\n"); err != nil || len(text) != want {
		t.Errorf("the file has %d bytes, want %d: %v\n%s", len(text), want, err, text)
	}
	set("")
	if text, err := os.ReadFile(file); err != nil || string(text) != "127.0.0.1 localhost\n" {
		t.Errorf("in the end it is %q, %v", text, err)
	}
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("it is another file, %v", err)
	}
	if err := Update(file+".missing", func(string) string { return "x" }); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
