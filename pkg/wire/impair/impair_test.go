//go:build linux

package impair

import (
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

func TestImpairment(t *testing.T) {
	count := func(cfg contract.Impairment) (lost, dup, corrupt, late int, delay time.Duration) {
		m := newImpairer(cfg)
		last := time.Duration(0)
		for i := range 20_000 {
			now := time.Duration(i) * 10 * time.Millisecond
			v := m.decide(now, 1000, 0)
			switch {
			case v.copies == 0:
				lost++
				continue
			case v.copies == 2:
				dup++
			}
			if v.corrupt >= 0 {
				corrupt++
			}
			if v.at < last {
				late++
			}
			last = v.at
			delay += v.at - now
		}
		return lost, dup, corrupt, late, delay / 20_000
	}
	near := func(what string, got, want, by int) {
		t.Helper()
		if got < want-by || got > want+by {
			t.Errorf("%s: %d instead of %d", what, got, want)
		}
	}
	lost, dup, corrupt, _, delay := count(contract.Impairment{Loss: 1, Duplication: 2, Corruption: 5, DelayMS: 50, JitterMS: 10, Seed: 1})
	near("lost", lost, 200, 50)
	near("duplicated", dup, 396, 70)
	near("corrupted", corrupt, 990, 120)
	near("delay, µs", int(delay/time.Microsecond), 50_000, 1500)
	again, _, _, _, _ := count(contract.Impairment{Loss: 1, Duplication: 2, Corruption: 5, DelayMS: 50, JitterMS: 10, Seed: 1})
	if again != lost {
		t.Error("the same seed chose differently")
	}
	_, _, _, late, _ := count(contract.Impairment{Reordering: 10, DelayMS: 50, Seed: 1})
	near("overtaking", late, 1800, 200) // of two in a row one overtakes

	// 8 Mbit/s carry 1,000 bytes in 1 ms.
	m := newImpairer(contract.Impairment{RateKbit: 8000})
	var v verdict
	for range 100 {
		v = m.decide(0, 1000, 0)
	}
	if v.at != 100*time.Millisecond {
		t.Errorf("100 packets take %v", v.at)
	}
	if !m.decide(0, 1000, impairQueue).full {
		t.Error("the queue has no end")
	}
}
