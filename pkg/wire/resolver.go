//go:build linux

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/contract"
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

// lookupAll asks the resolver and tells how many peers had no session.
func (f *Fabric) lookupAll() int {
	f.mu.Lock()
	var names []string
	for name, p := range f.eng.peers {
		if p.cur == nil {
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
	if p := f.eng.peers[name]; p != nil {
		f.eng.setAddrs(p, addrs)
		poke(f.ticks)
	}
}

// DNSResolver finds a Pod at the headless Service <pod>-wire: by SRV, and by A and
// AAAA where that has no answer.
type DNSResolver struct {
	// Namespace is appended to the name, as "<service>.<namespace>"; "" leaves
	// that to the search list.
	Namespace string
	// Mark is set on the queries' sockets, 0 for none.
	Mark uint32

	once     sync.Once
	resolver *net.Resolver
}

// Lookup is Resolver's.
func (d *DNSResolver) Lookup(ctx context.Context, pod string) ([]netip.Addr, error) {
	d.once.Do(func() {
		dialer := &net.Dialer{Timeout: 2 * time.Second, Control: MarkSocket(d.Mark)}
		d.resolver = &net.Resolver{PreferGo: true, Dial: dialer.DialContext}
	})
	name := contract.WireService(pod)
	if d.Namespace != "" {
		name += "." + d.Namespace
	}
	hosts := []string{name}
	if _, srv, err := d.resolver.LookupSRV(ctx, "wire", "udp", name); err == nil && len(srv) > 0 {
		hosts = hosts[:0]
		for _, s := range srv {
			hosts = append(hosts, s.Target)
		}
	}
	var addrs []netip.Addr
	var errs []error
	for _, h := range hosts {
		a, err := d.resolver.LookupNetIP(ctx, "ip", h)
		if err != nil {
			errs = append(errs, err)
		}
		addrs = append(addrs, a...)
	}
	if len(addrs) > 0 {
		return addrs, nil
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("looking up %s: %w", name, err)
	}
	return nil, nil
}

// FileResolver finds Pods in addresses.json (contract.Addresses). The file is read
// again when it changed; a file that does not exist knows nobody.
type FileResolver struct {
	Path string

	mu    sync.Mutex
	stamp time.Time
	size  int64
	pods  map[string][]netip.Addr
}

// Lookup is Resolver's.
func (r *FileResolver) Lookup(_ context.Context, pod string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	st, err := os.Stat(r.Path)
	if errors.Is(err, fs.ErrNotExist) {
		r.pods, r.stamp = nil, time.Time{}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if r.pods == nil || !st.ModTime().Equal(r.stamp) || st.Size() != r.size {
		b, err := os.ReadFile(r.Path)
		if err != nil {
			return nil, err
		}
		var file contract.Addresses
		if err := json.Unmarshal(b, &file); err != nil {
			return nil, fmt.Errorf("reading %s: %w", r.Path, err)
		}
		if file.Version != contract.AddressesVersion {
			return nil, fmt.Errorf("%s: version %q is not %q", r.Path, file.Version, contract.AddressesVersion)
		}
		r.pods, r.stamp, r.size = file.Pods, st.ModTime(), st.Size()
	}
	return slices.Clone(r.pods[pod]), nil
}

// Resolvers asks all of them and gives all that they know.
type Resolvers []Resolver

// Lookup is Resolver's. It fails only when none of them knows an address and one
// failed.
func (rs Resolvers) Lookup(ctx context.Context, pod string) ([]netip.Addr, error) {
	found, errs := make([][]netip.Addr, len(rs)), make([]error, len(rs))
	var group sync.WaitGroup
	for i, r := range rs {
		group.Go(func() { found[i], errs[i] = r.Lookup(ctx, pod) })
	}
	group.Wait()
	var all []netip.Addr
	for _, addrs := range found {
		for _, a := range addrs {
			if a = a.Unmap(); !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, errors.Join(errs...)
}
