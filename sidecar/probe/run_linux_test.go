package probe

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	before := inode(t)
	r := Run(t.Context())
	if inode(t) != before {
		t.Error("the caller is in another network namespace afterwards")
	}
	if len(r.Features) != len(trials) {
		t.Errorf("%d outcomes of %d trials", len(r.Features), len(trials))
	}
	// What every machine has that tests of this module run on.
	for _, f := range []Feature{Veth, Bridge, Rules, Packet} {
		if o, ok := r.Outcome(f); !ok || o.Error != "" {
			t.Errorf("%s: tried %v, %s", f, ok, o.Error)
		}
	}
	if r.Kernel == "" {
		t.Error("no kernel release")
	}
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "last")
	if err := r.Write(&out, file); err != nil {
		t.Fatal(err)
	}
	last, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{out.Bytes(), last} {
		var back Report
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Errorf("read back: %s", diff)
		}
	}
}

func inode(t *testing.T) uint64 {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &s); err != nil {
		t.Fatal(err)
	}
	return s.Ino
}
