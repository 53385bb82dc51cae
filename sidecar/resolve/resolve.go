// Package resolve finds the present addresses of other Pods of the lab: from the
// directory that the controller fills, and from the cluster's DNS.
package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// dnsAge is how long an answer of the DNS is believed, dnsFailAge how long a
// failure; dnsPatience is for one question.
const (
	dnsAge      = 5 * time.Second
	dnsFailAge  = time.Second
	dnsPatience = 2 * time.Second
)

// maxCached bounds the answers that are kept.
const maxCached = 4096

// Resolver implements wire.Resolver.
type Resolver struct {
	dialer  net.Dialer
	servers []string
	search  []string

	mu    sync.Mutex
	known map[string][]netip.Addr
	cache map[string]*answer
}

type answer struct {
	done  chan struct{}
	at    time.Time
	addrs []netip.Addr
	err   error
}

// New returns a resolver that asks the servers (host:port) of the cluster's DNS, in the
// search domains.
func New(servers, search []string) *Resolver {
	return &Resolver{dialer: net.Dialer{Timeout: dnsPatience}, cache: map[string]*answer{}, servers: servers, search: search}
}

// SetKnown takes the directory's addresses, and reports whether they are new.
func (r *Resolver) SetKnown(pods map[string][]netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := len(pods) != len(r.known)
	for pod, addrs := range pods {
		changed = changed || !slices.Equal(addrs, r.known[pod])
	}
	r.known = pods
	return changed
}

// Forget makes the next Lookup of a Pod query again, because its address did not answer.
func (r *Resolver) Forget(pod string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.cache[contract.PodHost(pod)]; a != nil && !a.at.IsZero() {
		delete(r.cache, contract.PodHost(pod))
	}
}

// Lookup gives the addresses of a Pod: the directory's first, then the DNS'. No
// address and no error means that it is not known yet.
func (r *Resolver) Lookup(ctx context.Context, pod string) ([]netip.Addr, error) {
	r.mu.Lock()
	addrs := slices.Clone(r.known[pod])
	r.mu.Unlock()
	more, err := r.Name(ctx, contract.PodHost(pod))
	for _, a := range more {
		if !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) > 0 {
		return addrs, nil
	}
	var notFound *net.DNSError
	if errors.As(err, &notFound) && notFound.IsNotFound {
		return nil, nil
	}
	return nil, err
}

// Name asks the DNS for a name, in the search domains first where it has few
// dots. Questions for one name at one time are one question.
func (r *Resolver) Name(ctx context.Context, name string) ([]netip.Addr, error) {
	if len(r.servers) == 0 {
		return nil, nil
	}
	r.mu.Lock()
	a := r.cache[name]
	if a == nil || !a.at.IsZero() && time.Since(a.at) > age(a.err) {
		if len(r.cache) >= maxCached {
			clear(r.cache)
		}
		a = &answer{done: make(chan struct{})}
		r.cache[name] = a
		go r.ask(name, a)
	}
	r.mu.Unlock()
	select {
	case <-a.done:
		return a.addrs, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("look up %s: %w", name, ctx.Err())
	}
}

func age(err error) time.Duration {
	if err != nil {
		return dnsFailAge
	}
	return dnsAge
}

func (r *Resolver) ask(name string, a *answer) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*dnsPatience)
	defer cancel()
	addrs, err := r.query(ctx, name)
	r.mu.Lock()
	a.addrs, a.err, a.at = addrs, err, time.Now()
	r.mu.Unlock()
	close(a.done)
}

// manyDots is from which on a name is first taken as it is; the kubelet's ndots.
const manyDots = 5

func (r *Resolver) query(ctx context.Context, name string) ([]netip.Addr, error) {
	var names []string
	if !strings.HasSuffix(name, ".") {
		for _, domain := range r.search {
			names = append(names, name+"."+strings.TrimSuffix(domain, ".")+".")
		}
		name += "."
	}
	if strings.Count(name, ".") > manyDots {
		names = append([]string{name}, names...)
	} else {
		names = append(names, name)
	}
	var last error
	for _, n := range names {
		addrs, err := r.queryServers(ctx, n)
		if err == nil && len(addrs) > 0 {
			return addrs, nil
		}
		var dnsErr *net.DNSError
		if err != nil && (last == nil || !errors.As(err, &dnsErr) || !dnsErr.IsNotFound) {
			last = err
		}
	}
	return nil, last
}

// queryServers asks the servers in turn. Go's resolver has the protocol; where it
// connects to is decided here.
func (r *Resolver) queryServers(ctx context.Context, fqdn string) ([]netip.Addr, error) {
	var err error
	for _, server := range r.servers {
		resolver := net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return r.dialer.DialContext(ctx, network, server)
		}}
		var addrs []netip.Addr
		one, cancel := context.WithTimeout(ctx, dnsPatience)
		addrs, err = resolver.LookupNetIP(one, "ip", fqdn)
		cancel()
		for i := range addrs {
			addrs[i] = addrs[i].Unmap()
		}
		var dnsErr *net.DNSError
		if err == nil || errors.As(err, &dnsErr) && dnsErr.IsNotFound {
			return addrs, err
		}
	}
	return nil, err
}
