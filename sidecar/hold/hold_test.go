package hold

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// A Pod that gives up is over the limit of its folder, which the kubelet measures by
// blocks (du(1)).
func TestGiveUp(t *testing.T) {
	dir := t.TempDir()
	if err := GiveUp(dir); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, evictFile), &st); err != nil {
		t.Fatal(err)
	}
	if used := st.Blocks * 512; used <= contract.StateLimit {
		t.Errorf("the folder has %d bytes, within the limit of %d", used, contract.StateLimit)
	}
}

func TestResident(t *testing.T) {
	if n := resident(os.Getpid()); n < 1<<20 || n > maxMemory {
		t.Errorf("this test takes %d bytes", n)
	}
	if n := resident(1 << 30); n != 0 {
		t.Errorf("no process takes %d bytes", n)
	}
}

// TestLayOutOnce: the files are laid out once in a sandbox, again after a failure, and again
// in another sandbox.
func TestLayOutOnce(t *testing.T) {
	times, fails := 0, true
	s := supervisor{Options: Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), LayOut: func() error {
		times++
		if fails {
			return errors.New("no such chunk")
		}
		return nil
	}}}
	if err := s.layOut(); !errors.Is(err, ErrLayOut) || !strings.Contains(err.Error(), "no such chunk") {
		t.Errorf("a failure: %v", err)
	}
	fails = false
	for range 2 {
		if err := s.layOut(); err != nil {
			t.Error(err)
		}
	}
	if times != 2 {
		t.Errorf("laid out %d times, want once more after the failure", times)
	}
	if err := s.forget(""); err != nil { // as in another sandbox
		t.Fatal(err)
	}
	if err := s.layOut(); err != nil || times != 3 {
		t.Errorf("another sandbox: laid out %d times, %v", times, err)
	}
}
