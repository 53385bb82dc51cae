package proto

import (
	"time"
)

// The sizes that real paths have: Ethernet, with and without the usual tunnels,
// jumbo, and the two minima.
var usualMTUs = []int{1200, 1280, 1400, 1422, 1440, 1450, 1480, 1492, 1500, 8900, 8950, 9000}

const (
	probeWait   = 150 * time.Millisecond // an answer takes at most that long
	probeTries  = 2
	probeExact  = 16               // the search ends that near, bytes
	confirmTime = 10 * time.Second // how often the size in use is asked again
	raiseTime   = 60 * time.Second // how often a greater one is tried
)

// prober finds the path MTU by sending padded datagrams that may not be
// fragmented (RFC 8899's method, since ICMP is often filtered). Nothing larger
// than what was answered is used.
type prober struct {
	limit   int // of the interface; greater is never tried
	Current int // greatest size that was answered; minMTU before that
	below   int // smallest size that was not answered, or limit+1

	asked    int // size that is being asked, 0 for none
	tries    int
	deadline time.Duration
	confirm  time.Duration
	raise    time.Duration
}

func newProber(limit int, now time.Duration) prober {
	return prober{limit: max(limit, MinMTU), Current: MinMTU, below: max(limit, MinMTU) + 1, confirm: now + confirmTime, raise: now + raiseTime}
}

// start returns the sizes to probe at once when a session begins.
func (p *prober) start(now time.Duration) []int {
	sizes := []int{p.limit}
	for i := len(usualMTUs) - 1; i >= 0; i-- {
		if s := usualMTUs[i]; s < p.limit && s > p.Current && len(sizes) < 6 {
			sizes = append(sizes, s)
		}
	}
	p.asked, p.tries, p.deadline = p.limit, 0, now+probeWait
	return sizes
}

// answered records that a datagram of size bytes arrived, and reports whether the size
// in use changed.
func (p *prober) answered(size int) bool {
	if size > p.limit {
		return false
	}
	if size == p.asked {
		p.asked, p.tries = 0, 0
	}
	if size <= p.Current {
		return false
	}
	p.Current = size
	if p.below <= size {
		p.below = p.limit + 1
	}
	return true
}

// tooBig records that the kernel rejected size bytes. The search starts again below.
func (p *prober) tooBig(size int, now time.Duration) {
	if size > p.Current {
		return
	}
	p.Current, p.below = MinMTU, size
	p.asked, p.tries, p.deadline = 0, 0, now
}

// next returns the size to probe now, 0 for none, and whether the size in use changed:
// a size that is no longer answered is given up.
func (p *prober) next(now time.Duration) (size int, changed bool) {
	if p.asked != 0 {
		if now < p.deadline {
			return 0, false
		}
		p.tries++
		if p.tries < probeTries || (p.asked == p.Current && p.tries < 2*probeTries) {
			p.deadline = now + probeWait
			return p.asked, false
		}
		switch {
		case p.asked == p.Current && p.Current > MinMTU:
			p.Current, p.below, changed = MinMTU, p.asked, true
		case p.asked > p.Current:
			p.below = min(p.below, p.asked)
		}
		p.asked, p.tries = 0, 0
	}
	switch {
	case now >= p.raise:
		p.raise, p.below = now+raiseTime, p.limit+1
	case now >= p.confirm:
		p.confirm = now + confirmTime
		return p.ask(p.Current, now), changed
	}
	if s := p.guess(); s != 0 {
		return p.ask(s, now), changed
	}
	return 0, changed
}

func (p *prober) ask(size int, now time.Duration) int {
	p.asked, p.tries, p.deadline = size, 0, now+probeWait
	return size
}

// guess returns the next size of the search: the limit, a usual size, or the middle.
func (p *prober) guess() int {
	if p.Current >= p.limit || p.below-p.Current <= 1 {
		return 0
	}
	if p.below > p.limit {
		return p.limit
	}
	for i := len(usualMTUs) - 1; i >= 0; i-- {
		if s := usualMTUs[i]; s > p.Current && s < p.below {
			return s
		}
	}
	if p.below-p.Current <= probeExact {
		return 0
	}
	return (p.below + p.Current) / 2
}

// due returns when next has something to do.
func (p *prober) due() time.Duration {
	if p.asked != 0 {
		return p.deadline
	}
	if p.guess() != 0 {
		return 0
	}
	return min(p.confirm, p.raise)
}
