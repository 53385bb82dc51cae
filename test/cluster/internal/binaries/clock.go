package binaries

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/c9s-lab/c9s/test/cluster/internal/host"
)

// ClockVariable is the environment variable by which a program built with the overlay
// has a clock that is off, in seconds. Its monotonic clock is right: timers and
// intervals are those of any other program.
const ClockVariable = "C9S_CLOCK_OFFSET"

// WithClock are the programs of a worker that go by the clock, and that a worker with
// a clock of its own therefore runs in another build. kube-proxy and the CNI plugins have
// no use for the time of day.
var WithClock = []Binary{
	{"containerd", "containerd", "github.com/containerd/containerd/v2/cmd/containerd", 100},
	{"containerd-shim-runc-v2", "containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", 15},
	{"kubelet", "programs", "k8s.io/kubernetes/cmd/kubelet", 280},
}

// Clocked is the cache of the same versions, built with a clock that can be off.
func (c Cache) Clocked() Cache { return Cache{Dir: c.Dir, clocked: true} }

const clockFile = `package time

import "syscall"

// clockOffset is the number of seconds by which Now is wrong.
var clockOffset = func() int64 {
	text, _ := syscall.Getenv("` + ClockVariable + `")
	seconds, err := atoi(text)
	if err != nil {
		return 0
	}
	return int64(seconds)
}()
`

// Overlay writes what `go build -overlay` takes to build programs whose clock
// ClockVariable sets off, for the Go that builds in dir, and returns its path. It is
// made from that Go's own package time.
func (c Cache) Overlay(ctx context.Context, dir string) (string, error) {
	out, err := goCommand(ctx, dir, "env", "GOROOT", "GOVERSION").Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 2 {
		return "", fmt.Errorf("finding Go's standard library: %v %q", err, out)
	}
	lib := filepath.Join(lines[0], "src", "time")
	text, err := os.ReadFile(filepath.Join(lib, "time.go"))
	if err != nil {
		return "", err
	}
	changed, err := offset(string(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", lines[1], err)
	}
	folder := filepath.Join(c.Dir, "overlay", lines[1])
	own := map[string]string{"time.go": changed, "c9s_offset.go": clockFile}
	replace := map[string]string{}
	for name, text := range own {
		replace[filepath.Join(lib, name)] = filepath.Join(folder, name)
		if err := host.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "overlay.json")
	return path, host.WriteFile(path, overlay, 0o644)
}

// offset changes the text of package time's time.go: Now adds clockOffset.
func offset(text string) (string, error) {
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(text, now) != 1 {
		return "", fmt.Errorf("time.Now does not begin as expected: %q", now)
	}
	return strings.Replace(text, now, now+"\tsec += clockOffset\n", 1), nil
}
