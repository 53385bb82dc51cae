//go:build linux

package wire

import (
	"math/rand/v2"
	"testing"
)

func TestCarrier(t *testing.T) {
	all := carrier{observed: true, device: true, settled: true, session: true, known: true, listed: true, remote: true}
	for _, tc := range []struct {
		name     string
		edit     func(*carrier)
		up, keep bool
	}{
		{"all is well", func(*carrier) {}, true, false},
		{"far end down", func(c *carrier) { c.remote = false }, false, false},
		{"both down", func(c *carrier) { c.remote, c.device = false, false }, true, false},
		{"peer lost", func(c *carrier) { c.session = false }, false, false},
		{"just started", func(c *carrier) { c.session, c.settled = false, false }, false, true},
		{"session, no state yet", func(c *carrier) { c.known = false }, false, true},
		{"wire unknown there", func(c *carrier) { c.listed = false }, false, false},
		{"cut", func(c *carrier) { c.cut = true }, false, false},
		{"cut, the device is down too", func(c *carrier) { c.cut, c.device = true, false }, false, false},
		{"cut, just started", func(c *carrier) { c.cut, c.session, c.settled = true, false, false }, false, false},
	} {
		c := all
		tc.edit(&c)
		if up, keep, _ := c.leg(); up != tc.up || keep != tc.keep {
			t.Errorf("%s: up %v, keep %v", tc.name, up, keep)
		}
	}
}

// Two ends whose devices come and go in any order never wait for each other.
func TestCarrierHasNoDeadlock(t *testing.T) {
	type end struct {
		legUp, seen, dev, device bool // leg's state; observed; last seen; real
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		var e [2]end
		step := func(i int) {
			me, far := &e[i], &e[1-i]
			if me.legUp {
				me.seen, me.dev = true, me.device
			}
			c := carrier{observed: me.seen, device: me.dev, settled: true, session: true, known: true, listed: true,
				remote: (carrier{observed: far.seen, device: far.dev}).reported()}
			me.legUp, _, _ = c.leg()
		}
		for range rng.IntN(20) {
			e[rng.IntN(2)].device = rng.IntN(2) == 0
			step(rng.IntN(2))
		}
		e[0].device, e[1].device = true, true
		for range 10 {
			step(0)
			step(1)
		}
		if !e[0].legUp || !e[1].legUp {
			t.Fatalf("stuck: %+v", e)
		}
	}
}
