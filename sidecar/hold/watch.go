package hold

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/c9s-lab/c9s/sidecar/api"
)

// A child is killed if it does not answer maxSilent times in a row or uses more memory than
// maxMemory. A probe of the kubelet would end the whole container instead, and so does the
// kernel if the container exceeds its limit.
const (
	watchEvery = 2 * time.Second
	askEvery   = 10
	maxSilent  = 6
	maxMemory  = 160 << 20
)

// watch looks after the child until ctx is done.
func watch(ctx context.Context, child *os.Process, socket string, log *slog.Logger) {
	client := api.SocketClient(socket)
	silent := 0
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if used := resident(child.Pid); used > maxMemory {
			log.Error("the sidecar takes too much memory and is killed", "bytes", used)
			_ = child.Kill()
			return
		}
		if n%askEvery != 0 {
			continue
		}
		if lives(ctx, client) {
			silent = 0
		} else if silent++; silent >= maxSilent {
			log.Error("the sidecar does not answer and is killed")
			_ = child.Kill()
			return
		}
	}
}

func lives(ctx context.Context, client *http.Client) bool {
	ok, err := api.Lives(ctx, client, netip.IPv4Unspecified())
	return err == nil && ok
}

// resident is the memory of a process, in bytes (proc_pid_statm(5)).
func resident(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
