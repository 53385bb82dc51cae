// Package impair delays, loses, duplicates, corrupts and reorders the frames of a wire.
package impair

import (
	"math/rand/v2"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

const (
	// impairQueue is how many packets wait for a rate, as netem's default.
	impairQueue = 1000
	// reorderHold is how long a reordered packet is kept back on a wire without
	// delay, so that those behind it overtake.
	reorderHold = 2 * time.Millisecond
)

// verdict is what happens to one packet.
type verdict struct {
	// copies is 0 for a lost packet, 2 for a duplicated one.
	copies int
	full   bool // lost because the rate's queue is full
	// at is when it leaves.
	at time.Duration
	// corrupt is the bit to flip, -1 for none.
	corrupt int
}

// impairer decides for one direction. The same seed gives the same decisions for the same
// packets, since each packet draws the same number of random values.
type impairer struct {
	cfg  contract.Impairment
	rng  *rand.Rand
	free time.Duration // when the rate's line is free
	last time.Duration // when the last packet in order leaves
}

func newImpairer(cfg contract.Impairment) *impairer {
	seed := uint64(cfg.Seed)
	if seed == 0 {
		seed = rand.Uint64()
	}
	return &impairer{cfg: cfg, rng: rand.New(rand.NewPCG(seed, 0x6339732077697265))}
}

// decide decides about a packet of size bytes. waiting is the number of queued packets.
func (m *impairer) decide(now time.Duration, size, waiting int) verdict {
	chance := func(percent float64) bool { return m.rng.Float64()*100 < percent }
	lost, corrupt := chance(m.cfg.Loss), chance(m.cfg.Corruption)
	dup, reorder := chance(m.cfg.Duplication), chance(m.cfg.Reordering)
	jitter, bit := 2*m.rng.Float64()-1, m.rng.IntN(1<<30)

	v := verdict{copies: 1, at: now, corrupt: -1}
	if lost {
		v.copies = 0
		return v
	}
	if dup {
		v.copies = 2
	}
	if corrupt && size > 0 {
		v.corrupt = bit % (8 * size)
	}
	if m.cfg.RateKbit > 0 {
		if waiting >= impairQueue {
			return verdict{full: true}
		}
		m.free = max(m.free, now) + time.Duration(float64(size*8)*float64(time.Millisecond)/float64(m.cfg.RateKbit))
		v.at = m.free
	}
	delay := milliseconds(m.cfg.DelayMS)
	switch {
	case reorder && delay > 0:
		return v // it overtakes those that are delayed
	case reorder:
		v.at += reorderHold
		return v
	}
	v.at += max(0, delay+time.Duration(jitter*float64(milliseconds(m.cfg.JitterMS))))
	// Jitter spreads packets; only Reordering changes their order.
	v.at = max(v.at, m.last)
	m.last = v.at
	return v
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
