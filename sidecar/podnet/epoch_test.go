package podnet

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Epochs grow whatever the clock does, over restarts and torn files.
func TestEpochsGrow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wire", "epoch")
	now := time.Now()
	var last uint64
	for _, step := range []time.Duration{0, 0, -10 * time.Minute, time.Second, -time.Hour, 2 * time.Hour, -200 * 365 * 24 * time.Hour, 200 * 365 * 24 * time.Hour} {
		now = now.Add(step)
		epoch, err := nextEpoch(file, now)
		if err != nil {
			t.Fatal(err)
		}
		if epoch <= last {
			t.Errorf("after a step of %s the epoch is %d, not more than %d", step, epoch, last)
		}
		last = epoch
	}
	for _, torn := range []string{"", "x", "-1", "99999999999999999999999"} {
		if err := os.WriteFile(file, []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		if epoch, err := nextEpoch(file, now); err != nil || epoch != uint64(now.UnixNano()) {
			t.Errorf("after %q: %d, %v", torn, epoch, err)
		}
	}
}
