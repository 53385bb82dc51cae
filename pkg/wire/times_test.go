//go:build linux

package wire

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// The changes that people notice, and how long they take. WIRE_TIMES=20 measures that; without it the
// figures are told and judged by nobody.
func TestTimes(t *testing.T) {
	n := 3
	times := os.Getenv("WIRE_TIMES")
	fmt.Sscan(times, &n)
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	var down, up, killed, back []float64
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	addr := 20
	for range n {
		time.Sleep(50 * time.Millisecond) // the repeats of the last heartbeat are over
		a.dev.down(t, "eth1")
		down = append(down, ms(eventually(t, "far end down", func() bool { return !b.dev.carrier("eth1") })))
		a.dev.up(t, "eth1")
		up = append(up, ms(eventually(t, "far end up", func() bool { return b.dev.carrier("eth1") })))
		b.stop()
		killed = append(killed, ms(eventually(t, "killed", func() bool { return !a.dev.carrier("eth1") })))
		addr++
		b.setAddr(addr)
		start := time.Now()
		b.start()
		eventually(t, "back", func() bool { return a.dev.carrier("eth1") && b.status(1).Up })
		back = append(back, ms(time.Since(start)))
	}
	t.Logf("medians of %d, ms: far end down %.1f, up %.1f, peer killed %.0f, back elsewhere %.0f", n, median(down), median(up), median(killed), median(back))
	if times != "" && (median(down) > 100 || median(killed) > 1500 || median(back) > 1500) {
		t.Error("too slow")
	}
}
