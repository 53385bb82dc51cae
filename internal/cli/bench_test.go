package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// clos writes a topology of n nodes and 4n links: a fifth are spines, the others
// leaves with five uplinks each.
func clos(n int) string {
	var b strings.Builder
	b.WriteString("name: clos\ntopology:\n  defaults:\n    kind: linux\n    image: quay.io/frrouting/frr:10.2.1\n    env: {ROLE: router}\n    exec: [\"ip route show\"]\n  groups:\n    spine: {labels: {role: spine}}\n    leaf: {labels: {role: leaf}}\n  nodes:\n")
	spines := n / 5
	for i := range n {
		group := "leaf"
		if i < spines {
			group = "spine"
		}
		fmt.Fprintf(&b, "    %s%d:\n      group: %s\n      env: {NUMBER: \"%d\"}\n", group, i, group, i)
	}
	b.WriteString("  links:\n")
	ports := make([]int, n)
	for i := spines; i < n; i++ {
		for up := range 5 {
			s := (i*5 + up) % spines
			ports[i]++
			ports[s]++
			fmt.Fprintf(&b, "    - endpoints: [\"leaf%d:eth%d\", \"spine%d:eth%d\"]\n", i, ports[i], s, ports[s])
		}
	}
	return b.String()
}

// BenchmarkRender goes from a topology file to YAML, for 1,000 nodes with 4,000
// links and ten times that. Beside the time it reports the peak of live memory,
// which the runtime is held to.
func BenchmarkRender(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			topo := filepath.Join(b.TempDir(), "clos.clab.yml")
			text := strings.Replace(clos(n), "name: clos\n", "name: clos\nmgmt: {ipv4-subnet: 10.0.0.0/16}\n", 1)
			if err := os.WriteFile(topo, []byte(text), 0o644); err != nil {
				b.Fatal(err)
			}
			peak := watchMemory(b)
			for b.Loop() {
				if code := Main([]string{"render", topo, "--planner", "builtin"}, IO{Out: io.Discard, Err: io.Discard}); code != ExitOK {
					b.Fatalf("exit code %d", code)
				}
			}
			b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
		})
	}
}

// watchMemory samples what the runtime holds from the system until the returned
// function is called, which returns the highest value in bytes.
func watchMemory(b *testing.B) (peak func() uint64) {
	debug.FreeOSMemory()
	stop, done := make(chan struct{}), make(chan uint64)
	go func() {
		var m runtime.MemStats
		highest := uint64(0)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				done <- highest
				return
			case <-tick.C:
				runtime.ReadMemStats(&m)
				highest = max(highest, m.HeapInuse+m.StackInuse)
			}
		}
	}()
	return func() uint64 {
		close(stop)
		return <-done
	}
}
