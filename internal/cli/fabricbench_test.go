package cli

import (
	"io"
	"path/filepath"
	"testing"
)

// BenchmarkFabric generates a fabric of 504 FRR routers and 496 hosts with 4,464 links, compiles
// it and renders it to YAML. Beside the time it reports the peak of live memory.
func BenchmarkFabric(b *testing.B) {
	dir := b.TempDir()
	peak := watchMemory(b)
	for b.Loop() {
		for _, args := range [][]string{
			{"generate", "--name", "dc", "--leaves", "496", "--spines", "8", "--hosts-per-leaf", "1", "-o", dir, "--force"},
			{"render", filepath.Join(dir, "dc.clab.yml"), "--planner", "builtin"},
		} {
			if code := Main(args, IO{Out: io.Discard, Err: io.Discard}); code != ExitOK {
				b.Fatalf("%v: exit code %d", args, code)
			}
		}
	}
	b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
}
