package controller

import "time"

// budget bounds writes of one sort: burst at once, and one more after each interval.
// What flaps for ever must not flood the API server.
type budget struct {
	burst    int
	interval time.Duration
	left     int
	filled   time.Time
}

func newBudget(burst int, interval time.Duration) *budget {
	return &budget{burst: burst, interval: interval, left: burst, filled: time.Now()}
}

// take uses one write up. If there is none, it returns after how long there is.
func (b *budget) take() (wait time.Duration) {
	now := time.Now()
	if gained := int(now.Sub(b.filled) / b.interval); gained > 0 {
		b.left = min(b.left+gained, b.burst)
		b.filled = b.filled.Add(time.Duration(gained) * b.interval)
	}
	if b.left == 0 {
		return b.interval - now.Sub(b.filled)
	}
	b.left--
	return 0
}

// giveBack returns what was taken for a write that failed.
func (b *budget) giveBack() { b.left = min(b.left+1, b.burst) }
