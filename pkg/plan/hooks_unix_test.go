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
	var raw []byte
	for deadline := time.Second; ; deadline *= 2 {
		h := fake(t, "hang-child", WithArgs("fake-planner", "hang-child", pidFile), WithDeadline(deadline))
		start := time.Now()
		if _, err := h.Plan(context.Background(), l, n); err != nil {
			t.Fatal(err)
		}
		// The child sleeps for a minute, and has the pipe for as long as it lives.
		if took := time.Since(start); took >= time.Minute {
			t.Errorf("took %s with a deadline of %s", took, deadline)
		}
		var err error
		if raw, err = os.ReadFile(pidFile); err == nil {
			break
		}
		if deadline >= lastDeadline {
			t.Fatalf("the fake did not start a child within %s: %v", deadline, err)
		}
	}
	pid, err := strconv.Atoi(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(status), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("child %d still runs", pid)
}
