package hold

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The worker's folder is not there for others than those who get its descriptor. The test
// runs itself again, in a mount namespace of its own.
func TestFolderIsDetached(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts")
	}
	const env = "C9S_TEST_DETACH"
	if os.Getenv(env) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestFolderIsDetached$", "-test.v")
		cmd.Env = append(os.Environ(), env+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	worker, path := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(worker, "other lab"), 0o700))
	must(unix.Mount(worker, path, "", unix.MS_BIND, ""))
	f, err := detach(path)
	must(err)
	defer f.Close()
	if all, err := os.ReadDir(path); err != nil || len(all) > 0 {
		t.Errorf("by the path there are %v, %v", all, err)
	}
	if all, err := f.ReadDir(-1); err != nil || len(all) != 1 {
		t.Errorf("by the descriptor there are %v, %v", all, err)
	}
	if st, err := os.Stat(worker); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	for _, none := range []string{"", filepath.Join(path, "missing")} {
		if f, err := detach(none); f != nil || err != nil {
			t.Errorf("detach %q: %v %v", none, f, err)
		}
	}
	if f, err := detach(path); f != nil || err == nil {
		t.Error("a folder of the container itself was taken for the worker's")
	}
}
