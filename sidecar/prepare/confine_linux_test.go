package prepare

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// confined is the environment variable that makes this test program a confined prepare.
const confined = "C9S_TEST_CONFINED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(confined); dir != "" {
		os.Exit(runConfined(dir))
	}
	os.Exit(m.Run())
}

// runConfined lays out the Pod in dir and tries what prepare has no business to do.
func runConfined(dir string) int {
	if err := Confine(); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := Run(podIn(dir)); err != nil {
		fmt.Println(err)
		return 1
	}
	threads, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(threads) < 2 {
		fmt.Println("threads:", len(threads), err)
		return 1
	}
	for _, thread := range threads {
		data, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(data)) {
			if key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t"); key == "CapPrm" || key == "CapEff" || key == "NoNewPrivs" {
				fmt.Println(key, value)
			}
		}
	}
	for what, err := range map[string]error{
		"mount":    unix.Mount("none", dir, "tmpfs", 0, ""),
		"mknod":    unix.Mknod(filepath.Join(dir, "device"), unix.S_IFBLK, 0),
		"setns":    unix.Unshare(unix.CLONE_NEWNET),
		"hostname": unix.Sethostname([]byte("x")),
	} {
		if !errors.Is(err, unix.EPERM) {
			fmt.Println(what, "was not refused:", err)
		}
	}
	return 0
}

// withoutCgo returns this test program, built like the sidecar without cgo. With cgo, as for the
// race detector, a process cannot drop the capabilities of all its threads.
func withoutCgo(t *testing.T) string {
	t.Helper()
	if _, _, e := syscall.AllThreadsSyscall(syscall.SYS_GETPID, 0, 0, 0); e != syscall.ENOTSUP {
		return "/proc/self/exe"
	}
	program := filepath.Join(t.TempDir(), "prepare.test")
	cmd := exec.Command("go", "test", "-c", "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return program
}

// TestConfined: while files are laid out, the privileged sidecar has only the capabilities for
// that, in every thread, and still gives files their owners in folders of others.
func TestConfined(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("dropping capabilities needs root")
	}
	e := file("etc/config", "text", "c")
	e.UID, e.GID = 1000, 1001
	p := newPod(t, contract.Manifest{Nodes: []contract.ManifestNode{{Name: "R1", ID: "r1", Entries: []contract.Entry{e}}}}, map[string]string{"c": "text"})
	dir := filepath.Dir(p.Plan)
	p.must(os.MkdirAll(filepath.Join(p.Nodes, "r1", "etc"), 0o700))
	p.must(os.Chown(filepath.Join(p.Nodes, "r1", "etc"), 1002, 1002)) // the device's user
	cmd := exec.Command(withoutCgo(t))
	cmd.Env = append(os.Environ(), confined+"="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		lines[strings.TrimSpace(line)] = true
	}
	want := []string{fmt.Sprintf("CapPrm %016x", needed), fmt.Sprintf("CapEff %016x", needed), "NoNewPrivs 1"}
	for _, line := range want {
		if !lines[line] {
			t.Errorf("no thread has %q:\n%s", line, out)
		}
		delete(lines, line)
	}
	for line := range lines {
		t.Errorf("%s", line)
	}
	var st unix.Stat_t
	p.must(unix.Stat(filepath.Join(p.Nodes, "r1/etc/config"), &st))
	if st.Uid != 1000 || st.Gid != 1001 || st.Mode&0o777 != 0o640 {
		t.Errorf("the file is of %d:%d with mode %o", st.Uid, st.Gid, st.Mode)
	}
}
