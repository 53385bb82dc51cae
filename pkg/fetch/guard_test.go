package fetch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestIsPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "2002:808:808::1": true,
		"127.0.0.1": false, "127.255.0.9": false, "0.0.0.0": false, "0.1.2.3": false, "10.1.2.3": false, "172.16.0.1": false,
		"192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "100.100.100.200": false, "192.0.0.192": false,
		"198.18.0.1": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false,
		"64:ff9b::a9fe:a9fe": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "2002:a00:1::": false, "2001:db8::1": false,
		"::ffff:8.8.8.8": true, "::ffff:100.64.0.1": false, "::ffff:198.18.0.1": false, "fec0::1%eth0": false, "2001:db8::1%eth0": false,
	} {
		if got := IsPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("IsPublic(%s) = %v", text, got)
		}
	}
}

// resolveAll has every name resolve to 127.0.0.1 for this test, as a hostile name server
// has it.
func resolveAll(t *testing.T) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	old := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = old; server.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			m.Response = true
			m.Additionals = nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(out, from)
			}
		}
	}()
}

// TestStrangersReachNoPrivateAddress has URLs of a stranger's topology that lead to this
// machine: by address, in every notation, by name, and by a redirect.
func TestStrangersReachNoPrivateAddress(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; _, _ = w.Write([]byte("secret")) }))
	defer server.Close()
	resolveAll(t)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "rebinding.example.com"} {
		url := "http://" + host + ":" + port + "/x"
		_, err := Public(t.Context(), url)
		var private *PrivateError
		if !errors.As(err, &private) {
			t.Errorf("%s: %v", url, err)
		}
	}
	// What the user typed may be here, but no name may lead here on its own.
	if _, err := Typed(t.Context(), "http://rebinding.example.com:"+port+"/x"); err == nil {
		t.Error("a name led to this machine")
	}
	if asked > 0 {
		t.Errorf("the server was asked %d times", asked)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if body, err := Typed(t.Context(), "http://"+host+":"+port+"/x"); err != nil || string(body) != "secret" {
			t.Errorf("%s, which the user typed: %q, %v", host, body, err)
		}
	}
}

// TestRedirects: once a public address was asked, every other must be public too.
func TestRedirects(t *testing.T) {
	for _, r := range []rule{publicOnly, asTyped} {
		g := newGuard(r)
		g.reached = []netip.Addr{netip.MustParseAddr("8.8.8.8")}
		for _, to := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00::1"} {
			if err := g.judge("10.0.0.1", netip.MustParseAddr(to)); err == nil {
				t.Errorf("rule %d: a redirect from the Internet leads to %s", r, to)
			}
		}
	}
	file := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ok" {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}
	}))
	defer file.Close()
	asked := 0
	loop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	}))
	defer loop.Close()
	if _, err := Typed(t.Context(), loop.URL+"/"); err == nil || !strings.Contains(err.Error(), "too many redirects") {
		t.Errorf("a circle of redirects: %v", err)
	}
	if asked > 1+maxRedirects {
		t.Errorf("a circle of redirects was followed %d times", asked-1)
	}
	g := newGuard(asTyped)
	_, done, err := open(t.Context(), file.URL+"/ok", g)
	if err != nil {
		t.Fatal(err)
	}
	done()
	if len(g.reached) != 1 || g.reached[0] != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("the addresses that were connected to are %v", g.reached)
	}
	if body, err := HTTP(t.Context(), file.URL); err == nil {
		t.Errorf("a redirect to a file gives %q", body)
	}
}

// TestProxy: a proxy connects in c9s' place, so names are judged before it is asked.
func TestProxy(t *testing.T) {
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.Host) }))
	defer proxy.Close()
	resolveAll(t)
	through := func(r rule, url string) error {
		g := newGuard(r)
		g.environment = http.ProxyURL(must(t, proxy.URL))
		_, done, err := open(t.Context(), url, g)
		if err == nil {
			done()
		}
		return err
	}
	var private *PrivateError
	for _, url := range []string{"http://rebinding.example.com/x", "http://10.0.0.1/x", "http://[::ffff:169.254.169.254]/x"} {
		if err := through(publicOnly, url); !errors.As(err, &private) {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := through(asTyped, "http://rebinding.example.com/x"); !errors.As(err, &private) {
		t.Errorf("a name led to this machine: %v", err)
	}
	if len(asked) > 0 {
		t.Errorf("the proxy was asked for %v", asked)
	}
	if err := through(publicOnly, "http://8.8.8.8/x"); err != nil || len(asked) != 1 {
		t.Errorf("a public address: %v, the proxy was asked for %v", err, asked)
	}
}

func must(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestAnswersAreBounded has a server that does not end.
func TestAnswersAreBounded(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 1<<20); sent < 8*MaxSize; sent += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	if _, err := HTTP(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("an endless body: %v", err)
	}
	server.Close() // waits for the handler
	if sent > 2*MaxSize {
		t.Errorf("%d bytes were read", sent)
	}
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	for in, want := range map[string]string{
		"https://user:pw@host/x":                       "https://…@host/x",
		"get https://ghp_token@github.com/a/b.git now": "get https://…@github.com/a/b.git now",
		"ssh://git:p@ss@host/x":                        "ssh://…@host/x",
		"https://h/x?private_token=abc&ref=main#y":     "https://h/x?private_token=…&ref=main#y",
		"https://h/x?X-Amz-Signature=abc":              "https://h/x?X-Amz-Signature=…",
		"https://h/x/@scope?q=1":                       "https://h/x/@scope?q=1",
		"mail a@b.c":                                   "mail a@b.c",
	} {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	url := strings.Replace(server.URL, "http://", "http://user:sekret@", 1) + "/repo.git?token=sekret"
	torn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9") }))
	defer torn.Close()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range MaxSize>>20 + 1 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for what, get := range map[string]func() error{
		"not found":   func() error { _, err := HTTP(t.Context(), url); return err },
		"refused":     func() error { _, err := Public(t.Context(), url); return err },
		"no such URL": func() error { _, err := HTTP(t.Context(), url+"\x7f"); return err },
		"no scheme":   func() error { _, err := HTTP(t.Context(), strings.Replace(url, "http", "gopher", 1)); return err },
		"git":         func() error { return Clone(t.Context(), Repo{URL: url}, t.TempDir()+"/x") },
		"torn":        func() error { _, err := HTTP(t.Context(), torn.URL+"/?token=sekret"); return err },
		"endless":     func() error { _, err := HTTP(t.Context(), endless.URL+"/?token=sekret"); return err },
		"git, late":   func() error { return Clone(over, Repo{URL: url}, t.TempDir()+"/x") },
		"git, large":  func() error { return tooLarge(url, 1<<20) },
		"git, gone": func() error {
			return Clone(t.Context(), Repo{URL: "http://u:sekret@127.0.0.1:1/x.git?token=sekret"}, t.TempDir()+"/x")
		},
	} {
		if err := get(); err == nil || strings.Contains(err.Error(), "sekret") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
