//go:build linux

package proto

import (
	"net/netip"
	"time"
)

// The hellos a second whose MAC is computed: of each peer from its own addresses,
// and of all other addresses that fall into one bucket. A peer needs about ten.
const (
	peerHellos      = 100
	strangerHellos  = 20
	strangerBuckets = 256
)

// bucket is a token bucket that holds one second's tokens. The zero value is full.
type bucket struct {
	spent float64
	at    time.Duration
}

// take takes a token, and reports whether there was one.
func (b *bucket) take(now time.Duration, rate float64) bool {
	b.spent = max(0, b.spent-rate*(now-b.at).Seconds())
	b.at = now
	if b.spent+1 > rate {
		return false
	}
	b.spent++
	return true
}

// allow reports whether to compute the MAC of a hello in p's name. One address does not
// use up the tokens of another one, unless both are strangers that share a bucket, which
// nobody can predict.
func (e *Engine) allow(p *Peer, from netip.AddrPort) bool {
	if p.familiar(from.Addr()) {
		return p.hellos.take(e.Now(), peerHellos)
	}
	at := sum(e.secret[:], []byte("stranger"), from.Addr().AsSlice())[0]
	return e.strangers[at].take(e.Now(), strangerHellos)
}
