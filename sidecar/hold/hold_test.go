package hold

import (
	"os"
	"path/filepath"
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
