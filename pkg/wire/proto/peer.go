//go:build linux

package proto

import (
	"net/netip"
	"slices"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Peer is another Pod with which this one has wires, or a session for another reason.
type Peer struct {
	name string
	// passive: this end only answers its hellos.
	passive bool
	Wires   []contract.WireID // sorted
	// addrs are the resolver's answer; last is the last proven address.
	addrs []netip.Addr
	last  netip.AddrPort

	Cur *Session // nil without one
	try *attempt // handshake that this end began, nil for none

	nextTry time.Duration
	backoff time.Duration
	tries   int

	// Remote is what the peer's last heartbeat said about the wires; known after
	// the first of a session.
	Remote  map[contract.WireID]uint8
	Known   bool
	partial map[contract.WireID]uint8 // of a heartbeat in several parts
	part    uint8

	// repeats are the times at which an urgent heartbeat is sent again.
	repeats []time.Duration
	// Refused is why the last hello of the peer was rejected.
	Refused string
	// hellos limits those from the peer's own addresses.
	hellos bucket
}

// attempt is a handshake that this end began.
type attempt struct {
	number  uint32
	session uint32
	nonce   nonce
	// proof is when the peer's last challenge arrived, which proves that both
	// directions work.
	proof  time.Duration
	proven bool
}

// knows reports whether the resolver returned addr.
func (p *Peer) knows(addr netip.Addr) bool { return slices.Contains(p.addrs, addr) }

// familiar reports whether the resolver or an earlier session saw the peer at addr.
func (p *Peer) familiar(addr netip.Addr) bool { return p.knows(addr) || p.last.Addr() == addr }

// asked reports whether a challenge or a welcome answers the present attempt.
func (p *Peer) asked(h *hello) bool {
	t := p.try
	if t == nil {
		return false
	}
	if h.kind == msgChallenge {
		return h.nonce == t.nonce
	}
	return h.echo == t.nonce
}

// candidates returns the addresses to send hellos to.
func (p *Peer) candidates(port uint16) []netip.AddrPort {
	var to []netip.AddrPort
	if p.last.IsValid() {
		to = append(to, p.last)
	}
	for _, a := range p.addrs {
		if ap := netip.AddrPortFrom(a, port); !slices.Contains(to, ap) && len(to) < 8 {
			to = append(to, ap)
		}
	}
	return to
}

// take stores the wires of one part of a heartbeat, and reports whether their state
// changed.
func (p *Peer) take(h *heartbeat) bool {
	if h.part == 0 {
		p.partial = make(map[contract.WireID]uint8, len(h.wires))
	} else if p.partial == nil || h.part != p.part+1 {
		p.partial = nil // a part is missing; the next heartbeat is soon
		return false
	}
	p.part = h.part
	for _, w := range h.wires {
		p.partial[w.id] = w.bits
	}
	if h.part != h.parts-1 {
		return false
	}
	changed := !p.Known || len(p.Remote) != len(p.partial)
	for id, bits := range p.partial {
		if old, ok := p.Remote[id]; !ok || old != bits {
			changed = true
		}
	}
	p.Remote, p.Known, p.partial = p.partial, true, nil
	return changed
}
