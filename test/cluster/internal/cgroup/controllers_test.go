package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// A plain file stands for the kernel's, which takes a line at a time: the last
// one that was written is seen.
func TestRestoreControllers(t *testing.T) {
	dir := t.TempDir()
	record, control := filepath.Join(dir, "record"), filepath.Join(dir, "cgroup.subtree_control")
	for _, test := range []struct{ before, now, want string }{
		{"memory pids\n", "cpu memory pids\n", "-cpu"},
		{"memory pids\n", "memory pids\n", "memory pids\n"},
		{"\n", "pids\n", "-pids"},
		{"cpu memory\n", "memory\n", "memory\n"},
	} {
		for path, text := range map[string]string{record: test.before, control: test.now} {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // without a record nothing is done
			if err := restoreControllers(dir, record); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(control); err != nil || string(got) != test.want {
			t.Errorf("before %q, now %q: wrote %q, want %q", test.before, test.now, got, test.want)
		}
		if _, err := os.Stat(record); !os.IsNotExist(err) {
			t.Error("the record is left")
		}
	}
}
