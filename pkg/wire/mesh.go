//go:build linux

package wire

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
)

// Sessions do not serve wires alone. The management network uses them too: a session
// proves the address of another Pod of the lab, and that the Pod is alive.

// Peer is another Pod of the lab.
type Peer struct {
	Pod string
	// Addr is its proven address, not valid without a session.
	Addr netip.Addr
	RTT  time.Duration
}

// SetLab sets which Pods may open a session although no wire leads to them.
func (f *Fabric) SetLab(pods map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lab = pods
}

// Keep keeps sessions with these Pods too, although no wire leads to them.
func (f *Fabric) Keep(pods map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !maps.Equal(f.kept, pods) {
		f.kept = maps.Clone(pods)
		f.updatePeers()
		poke(f.ticks)
	}
	poke(f.resolve)
}

// Peers returns all Pods that have or should have a session.
func (f *Fabric) Peers() []Peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]Peer, 0, len(f.eng.Peers))
	for name, p := range f.eng.Peers {
		peer := Peer{Pod: name}
		if s := p.Cur; s != nil && s.Proven {
			peer.Addr, peer.RTT = s.Addr.Load().Addr().Unmap(), s.RTT
		}
		all = append(all, peer)
	}
	slices.SortFunc(all, func(a, b Peer) int { return cmp.Compare(a.Pod, b.Pod) })
	return all
}

// called makes a Pod of the lab a peer because it sent a hello. It returns nil for a
// stranger. The caller holds the lock.
func (f *Fabric) called(pod string) *proto.Peer {
	if !f.lab[pod] || pod == f.opt.Pod {
		return nil
	}
	f.callers[pod] = f.now()
	f.updatePeers()
	return f.eng.Peers[pod]
}

// forgetCallers removes those that have ended their session. The caller holds the lock.
func (f *Fabric) forgetCallers(now time.Duration) {
	forgotten := false
	for pod, at := range f.callers {
		p := f.eng.Peers[pod]
		switch {
		case p != nil && p.Cur != nil:
			f.callers[pod] = now
		case now-at > proto.CallerPatience:
			delete(f.callers, pod)
			forgotten = true
		}
	}
	if forgotten {
		f.updatePeers()
	}
}

// meshPeers adds the peers without wires.
func (f *Fabric) meshPeers(peers map[string][]contract.WireID) {
	add := func(pod string) {
		if _, ok := peers[pod]; !ok && pod != f.opt.Pod {
			peers[pod] = nil
		}
	}
	for pod := range f.kept {
		add(pod)
	}
	for pod := range f.callers {
		add(pod)
	}
}
