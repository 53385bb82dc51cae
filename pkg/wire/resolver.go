//go:build linux

package wire

import (
	"context"
	"net/netip"
	"time"

	"github.com/c9s-lab/c9s/internal/bounded"
)

const (
	// resolveEvery is how often peers without a session are looked up.
	resolveEvery = time.Second
	// resolveMax is the pace after many failures.
	resolveMax = 15 * time.Second
	// resolveTimeout bounds one lookup.
	resolveTimeout = 5 * time.Second
	// resolveAtOnce bounds lookups in parallel.
	resolveAtOnce = 8
)

// resolveLoop looks up the peers that have no session.
func (f *Fabric) resolveLoop() {
	wait := resolveEvery
	for {
		if f.lookupAll() == 0 {
			wait = time.Hour
		}
		timer := time.NewTimer(wait)
		select {
		case <-f.ctx.Done():
			timer.Stop()
			return
		case <-f.resolve:
			wait = resolveEvery
		case <-timer.C:
			wait = min(wait*3/2, resolveMax)
		}
		timer.Stop()
	}
}

// lookupAll looks up all peers without a session and returns their number.
func (f *Fabric) lookupAll() int {
	f.mu.Lock()
	var names []string
	for name, p := range f.eng.Peers {
		if p.Cur == nil {
			names = append(names, name)
		}
	}
	f.mu.Unlock()
	if f.opt.Resolver == nil {
		return 0
	}
	bounded.Each(len(names), resolveAtOnce, func(i int) {
		ctx, cancel := context.WithTimeout(f.ctx, resolveTimeout)
		defer cancel()
		addrs, err := f.opt.Resolver.Lookup(ctx, names[i])
		if err != nil {
			f.opt.Log.Debug("looking up a peer", "pod", names[i], "error", err)
		}
		if len(addrs) > 0 {
			f.found(names[i], addrs)
		}
	})
	return len(names)
}

func (f *Fabric) found(name string, addrs []netip.Addr) {
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.eng.Peers[name]; p != nil {
		f.eng.SetAddrs(p, addrs)
		poke(f.ticks)
	}
}
