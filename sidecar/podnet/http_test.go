package podnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/door"
)

// A probe with "wait" gets its yes when it becomes true, its no when the time is
// over, and without it the answer at once.
func TestProbesAreHeld(t *testing.T) {
	var yes atomic.Bool
	asked := atomic.Int32{}
	look := func() (bool, string) { asked.Add(1); return yes.Load(), "not yet" }

	if ok, why := await(httptest.NewRequest("GET", "/ready", nil), look); ok || why != "not yet" || asked.Load() != 1 {
		t.Fatalf("without wait: %v %q after %d looks", ok, why, asked.Load())
	}
	// At the beginning and in between; a machine that stands still in between has longer.
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		asked.Store(0)
		if ok, why := await(httptest.NewRequest("GET", "/ready?wait="+wait.String(), nil), look); ok || why != "not yet" {
			t.Fatalf("over: %v %q after %d looks", ok, why, asked.Load())
		}
		if asked.Load() >= 2 {
			break
		}
		if wait > 10*time.Second {
			t.Fatalf("%d looks in %v", asked.Load(), wait)
		}
	}
	// Nobody holds one for as long as it likes.
	long, answered := httptest.NewRequest("GET", "/ready?wait=1h", nil), make(chan struct{})
	go func() {
		_, _ = await(long, func() (bool, string) { return false, "never" })
		close(answered)
	}()
	defer func() {
		select {
		case <-answered:
		case <-time.After(longestAwait + time.Minute):
			t.Error("a probe is held for longer than the kubelet waits")
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if ok, _ := await(httptest.NewRequest("GET", "/ready?wait=10s", nil).WithContext(ctx), look); ok {
		t.Fatal("a client that went away got a yes")
	}
	time.AfterFunc(50*time.Millisecond, func() { yes.Store(true) })
	if ok, _ := await(httptest.NewRequest("GET", "/ready?wait=10s", nil), look); !ok {
		t.Fatal("no yes in ten seconds")
	}
}

// from is a client with an address of 127.0.0.0/8 of its own.
func from(t *testing.T, addr string) *http.Client {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	// The kubelet gives a probe five seconds.
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
}

// kubeletAddress is where the kubelet's probes come from.
const kubeletAddress = "127.0.0.200"

// Whatever 300 clients do, the kubelet's probes are answered: also where it comes
// later than they, and from an address that was never seen.
func TestProbesAmongStrangers(t *testing.T) {
	big := strings.Repeat("x", 8<<20)
	// held is closed once the kubelet's probe waits: its first look is before that.
	serve := func(t *testing.T) (at string, held chan struct{}) {
		held = make(chan struct{})
		d := admission(func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") })
		no := func(w http.ResponseWriter, r *http.Request) {
			looks := 0
			look := func() (bool, string) {
				if looks++; looks == 2 && strings.HasPrefix(r.RemoteAddr, kubeletAddress+":") {
					close(held)
				}
				return false, "not yet"
			}
			if ok, why := await(r, look); !ok {
				http.Error(w, why, http.StatusServiceUnavailable)
			}
		}
		server := newServer(door.Routes{
			api.PathReady: no, api.PathLive: func(http.ResponseWriter, *http.Request) {},
			api.PathStatus: door.Bounded(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, big) }),
		})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(d.Listener(l)) }()
		t.Cleanup(func() { server.Close() })
		return l.Addr().String(), held
	}
	for _, c := range []struct {
		name, say string
		sources   int
	}{
		{"say nothing", "", 3},
		{"say nothing, all from elsewhere", "", 250},
		{"begin a request", "GET /re", 3},
		{"wait for a probe", "GET /ready?wait=1h HTTP/1.1\r\nHost: x\r\n\r\n", 3},
		{"wait for a probe, all from elsewhere", "GET /ready?wait=1h HTTP/1.1\r\nHost: x\r\n\r\n", 250},
		{"do not read the status", "GET /status HTTP/1.1\r\nHost: x\r\n\r\n", 3},
		{"do not read the status, all from elsewhere", "GET /status HTTP/1.1\r\nHost: x\r\n\r\n", 250},
		{"come from the device", "GET /ready?wait=1h HTTP/1.1\r\nHost: x\r\n\r\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, held := serve(t)
			crowd := func() {
				for n := range 300 {
					source := "127.0.0.1"
					if c.sources > 0 {
						source = fmt.Sprintf("127.0.2.%d", 1+n%c.sources)
					}
					dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
					conn, err := dialer.Dial("tcp", at)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { conn.Close() })
					_, _ = io.WriteString(conn, c.say) // it may be out already
				}
			}
			crowd()
			kubelet := from(t, kubeletAddress)
			for range 5 {
				resp, err := kubelet.Get("http://" + at + api.PathLive)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Fatal(resp.Status)
				}
			}
			// A probe that waits stays while the crowd comes again.
			answered := make(chan error, 1)
			go func() {
				resp, err := kubelet.Get("http://" + at + api.PathReady + "?wait=200ms")
				if err == nil {
					resp.Body.Close()
				}
				answered <- err
			}()
			select {
			case <-held:
			case err := <-answered: // at once: too many wait
				answered <- err
			}
			crowd()
			if err := <-answered; err != nil {
				t.Error(err)
			}
		})
	}
}

// Every path is answered or not; none leads elsewhere.
func TestNoRedirects(t *testing.T) {
	s := &sidecar{}
	server := httptest.NewServer(s.handler())
	defer server.Close()
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, path := range []string{"//status", "/status/", "/./status", "/x/../status", "/stages/../../status", "/", "/statu"} {
		req, err := http.NewRequest(http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = path
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound || resp.Header.Get("Location") != "" {
			t.Errorf("%s: %s to %q", path, resp.Status, resp.Header.Get("Location"))
		}
	}
	resp, err := client.Post(server.URL+api.PathLive, "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %s", resp.Status)
	}
}

// A device has other Pods asked only for what a program of the Pod waits for.
func TestStagesOfOthers(t *testing.T) {
	want := contract.WaitFor{Pod: "r2", Node: "R2", Stage: "healthy"}
	m := &contract.Manifest{Pod: "r1", Nodes: []contract.ManifestNode{{Name: "R1", Containers: []contract.Container{{Program: contract.Program{
		Steps: []contract.Step{{Over: "create"}, {WaitFor: []contract.WaitFor{want}}},
	}}}}}}
	if !waitsFor(m, want) {
		t.Error("what the program waits for is not asked")
	}
	for _, w := range []contract.WaitFor{
		{Pod: "r3", Node: "R2", Stage: "healthy"}, {Pod: "169.254.169.254", Node: "R2", Stage: "healthy"},
		{Pod: "r2.evil.example", Node: "R2", Stage: "healthy"}, {Pod: "r2", Node: "R2", Stage: "other"}, {},
	} {
		if waitsFor(m, w) {
			t.Errorf("%+v is asked", w)
		}
	}
	// What is over already needs no question: its answer reports whether one would be asked.
	other := contract.WaitFor{Pod: "r3", Node: "R3", Stage: "healthy"}
	s := &sidecar{man: m, asker: newAsker(nil)}
	s.asker.over = map[contract.WaitFor]bool{want: true, other: true}
	for _, c := range []struct {
		from string
		w    contract.WaitFor
		code int
	}{
		{"unix", want, http.StatusNoContent}, {"unix", other, http.StatusNotFound}, {"tcp", want, http.StatusNotFound}, {"tcp", other, http.StatusNotFound},
	} {
		var at net.Addr = &net.TCPAddr{}
		if c.from == "unix" {
			at = &net.UnixAddr{}
		}
		query := url.Values{"pod": {c.w.Pod}, "node": {c.w.Node}, "stage": {c.w.Stage}}
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, at), "GET", api.PathStages+"?"+query.Encode(), nil)
		w := httptest.NewRecorder()
		s.serveStage(w, r)
		if w.Code != c.code {
			t.Errorf("%s for %+v: %d, want %d", c.from, c.w, w.Code, c.code)
		}
	}
}

// Many questions of one moment are one look.
func TestStatusIsLookedAtOncePerMoment(t *testing.T) {
	var c said
	var looks atomic.Int32
	var group sync.WaitGroup
	began := time.Now()
	for range 1000 {
		group.Go(func() {
			if !json.Valid(c.get(func() any { looks.Add(1); return api.Status{Pod: "r1"} })) {
				t.Error("no answer")
			}
		})
	}
	group.Wait()
	if n, most := looks.Load(), int32(time.Since(began)/moments)+1; n > most {
		t.Errorf("%d looks, want at most %d", n, most)
	}
}

// A client that follows the status hears that there is no news, and the news when it
// comes; a client that says what it has not gets what there is.
func TestStatusIsFollowed(t *testing.T) {
	s := &sidecar{cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	d := admission(func(netip.Addr) bool { return false })
	server := newServer(s.handler())
	server.ReadTimeout = 100 * time.Millisecond // shorter than the answer is held
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.10", strconv.Itoa(contract.StatusPort)))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(d.Listener(l)) }()
	t.Cleanup(func() { server.Close() })
	at := netip.MustParseAddr("127.0.0.10")
	first, changed, err := api.Follow(t.Context(), nil, at, "", func() {})
	if err != nil || !changed || first.Version != api.Version {
		t.Fatalf("%+v %v %v", first, changed, err)
	}
	client := &http.Client{}
	var once sync.Once
	second, changed, err := api.Follow(t.Context(), client, at, first.Tag(), func() {
		once.Do(func() {
			s.note(errors.New("something went wrong"))
			s.news.tell()
		})
	})
	if err != nil || !changed || second.LastError != "something went wrong" {
		t.Errorf("%+v %v %v", second, changed, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, changed, err = api.Follow(ctx, client, at, second.Tag(), cancel)
	if err == nil || changed {
		t.Errorf("after the end of its context: %v %v", changed, err)
	}
}
