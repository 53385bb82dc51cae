package fetch

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// rule says which addresses may be asked.
type rule int

const (
	anywhere rule = iota
	publicOnly
	asTyped
)

// guard judges every connection of one fetch, redirects included, by the address that
// the kernel is about to connect to: a name that resolves to something else the next
// time does not get past it.
type guard struct {
	rule rule
	// environment is the proxy that the environment asks for.
	environment func(*http.Request) (*url.URL, error)

	mu      sync.Mutex
	proxies map[string]bool // host:port
	reached []netip.Addr    // in the order of connecting
}

func newGuard(r rule) *guard {
	return &guard{rule: r, environment: http.ProxyFromEnvironment, proxies: map[string]bool{}}
}

// PrivateError is the error for an address that a stranger's topology may not be
// fetched from.
type PrivateError struct {
	Host string
	Addr netip.Addr
}

func (e *PrivateError) Error() string {
	if e.Host == "" || e.Host == e.Addr.String() {
		return fmt.Sprintf("%s is not a public address", e.Addr)
	}
	return fmt.Sprintf("%s is %s, which is not a public address", e.Host, e.Addr)
}

func (g *guard) transport() *http.Transport {
	return &http.Transport{
		Proxy:                  g.proxy,
		DialContext:            g.dial,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 1 << 20,
		TLSHandshakeTimeout:    10 * time.Second,
	}
}

func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	proxy := g.proxies[address]
	g.mu.Unlock()
	d := net.Dialer{Timeout: 15 * time.Second, Control: func(_, target string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(target)
		if err != nil {
			return err
		}
		if proxy {
			return nil
		}
		return g.judge(host, at.Addr())
	}}
	conn, err := d.DialContext(ctx, network, address)
	if err == nil && !proxy {
		if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
			g.mu.Lock()
			g.reached = append(g.reached, at.Addr())
			g.mu.Unlock()
		}
	}
	return conn, err
}

// judge returns an error if the rule is against connecting to a, which host is.
func (g *guard) judge(host string, a netip.Addr) error {
	if g.rule == anywhere || IsPublic(a) {
		return nil
	}
	g.mu.Lock()
	redirected := len(g.reached) > 0 && IsPublic(g.reached[0])
	g.mu.Unlock()
	if g.rule == asTyped && !redirected {
		_, literal := netip.ParseAddr(host)
		a := a.Unmap()
		if literal == nil || host == "localhost" || !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsUnspecified() {
			return nil
		}
	}
	return &PrivateError{host, a}
}

// proxy is the environment's. Where there is one it connects in c9s' place, so the
// target is judged by its name before.
func (g *guard) proxy(req *http.Request) (*url.URL, error) {
	p, err := g.environment(req)
	if err != nil || p == nil {
		return p, err
	}
	host := req.URL.Hostname()
	addrs, err := net.DefaultResolver.LookupNetIP(req.Context(), "ip", host)
	if err == nil { // a name that only the proxy can resolve is the proxy's to judge
		for _, a := range addrs {
			if err := g.judge(host, a); err != nil {
				return nil, err
			}
		}
		g.mu.Lock()
		g.reached = append(g.reached, addrs[:min(1, len(addrs))]...)
		g.mu.Unlock()
	}
	port := p.Port()
	if port == "" {
		port = map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[p.Scheme]
	}
	if port == "" {
		port = "80"
	}
	g.mu.Lock()
	g.proxies[net.JoinHostPort(p.Hostname(), port)] = true
	g.mu.Unlock()
	return p, nil
}

// special are prefixes that no public server has (IANA's special-purpose registries),
// beyond what netip.Addr's own methods tell.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("fec0::/10"),
}

// embedded are prefixes with an IPv4 address in them, and where it starts (NAT64, 6to4).
var embedded = map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("2002::/16"): 2}

// IsPublic reports whether an address is one of the public Internet.
func IsPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	for p, at := range embedded {
		if p.Contains(a) {
			raw := a.As16()
			return IsPublic(netip.AddrFrom4([4]byte(raw[at : at+4])))
		}
	}
	return true
}
