//go:build unix

package plan

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestHooksKillsChildren(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	l, n := hooksLab()
	h := fake(t, "hang-child", WithArgs("fake-planner", "hang-child", pidFile), WithDeadline(2*time.Second))
	start := time.Now()
	if _, err := h.Plan(context.Background(), l, n); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	raw, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal("the fake did not start a child:", err)
	}
	pid, _ := strconv.Atoi(string(raw))
	for range 50 {
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(status), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("child %d still runs", pid)
}
