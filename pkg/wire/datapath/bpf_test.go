//go:build linux

package datapath

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A program is loaded although signals arrive often, on which the kernel gives up.
func TestLoadAmongSignals(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it loads BPF programs")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			time.Sleep(100 * time.Microsecond)
		}
	}()
	for range 3000 {
		fd, err := RedirectToPeer(1).Load()
		if err != nil {
			t.Error(err)
			break
		}
		unix.Close(fd)
	}
	stop.Store(true)
	<-done
}
