package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/internal/foreign"
)

// connectTo is a client of an API server that answers all but /version with a handler.
func connectTo(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			fmt.Fprintln(w, `{"major":"1","minor":"31","gitVersion":"v1.31.0"}`)
			return
		}
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig(s.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Connect(t.Context(), Target{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The API server passes on what a Pod answers. A device that answers in its sidecar's
// place must not get the user's token.
func TestRedirectOfAPod(t *testing.T) {
	var token atomic.Value
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token.Store(r.Header.Get("Authorization"))
		fmt.Fprintln(w, `{}`)
	}))
	defer thief.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		c := connectTo(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, code) })
		_, err := c.proxy(t.Context(), "demo", "r1", 14802, "/status", foreign.MaxStatus)
		if !errors.Is(err, foreign.ErrRedirect) {
			t.Errorf("%d: %v", code, err)
		}
		if _, err := c.Typed.CoreV1().Pods("demo").Get(t.Context(), "r1", metav1.GetOptions{}); err == nil {
			t.Errorf("%d: an object from somewhere else", code)
		}
	}
	if got := token.Load(); got != nil {
		t.Errorf("somebody else was asked, with %q", got)
	}
}

// A Pod's answer is bounded, packed or not.
func TestAnswerOfAPod(t *testing.T) {
	c := connectTo(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat(" ", 1<<16))
		for range 100 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	if data, err := c.proxy(t.Context(), "demo", "r1", 14802, "/status", 1<<20); err == nil || len(data) > 0 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if data, err := c.proxy(t.Context(), "demo", "r1", 14802, "/status", 100<<16); err != nil || len(data) != 100<<16 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// unreachable fails some requests as a connection to an API server that is away does.
type unreachable struct {
	failures int
	err      error
	bodies   []string
}

func (u *unreachable) RoundTrip(req *http.Request) (*http.Response, error) {
	var text strings.Builder
	if req.Body != nil {
		if err := req.Write(&text); err != nil {
			return nil, err
		}
		_, body, _ := strings.Cut(text.String(), "\r\n\r\n")
		u.bodies = append(u.bodies, body)
	}
	if u.failures > 0 {
		u.failures--
		return nil, u.err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A request is repeated while the API server cannot be reached, if it cannot have been
// done already or may be done twice.
func TestOutage(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	torn := fmt.Errorf("reading: %w", net.ErrClosed)
	for name, c := range map[string]struct {
		method string
		err    error
		ctx    context.Context
		good   bool
	}{
		"not sent":                 {http.MethodPost, refused, t.Context(), true},
		"apply":                    {http.MethodPatch, refused, t.Context(), true},
		"something else":           {http.MethodGet, torn, t.Context(), false},
		"a command that hurries":   {http.MethodGet, refused, context.WithValue(t.Context(), impatient{}, true), false},
		"sent, and it may be done": {http.MethodPost, fmt.Errorf("sent: %w", syscall.ECONNRESET), t.Context(), false},
		"sent, and may be twice":   {http.MethodPatch, fmt.Errorf("sent: %w", syscall.ECONNRESET), t.Context(), true},
	} {
		u := &unreachable{failures: 1, err: c.err}
		var noted int
		g := &guard{next: u, outage: time.Minute, note: func(error) { noted++ }}
		req, err := http.NewRequestWithContext(c.ctx, c.method, "http://api", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := g.RoundTrip(req)
		if (err == nil) != c.good || c.good && (noted != 1 || len(u.bodies) != 2 || u.bodies[1] != "body") {
			t.Errorf("%s: %v, noted %d times, sent %q", name, err, noted, u.bodies)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
	// An API server that stays away is an error.
	g := &guard{next: &unreachable{failures: 1 << 20, err: refused}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.RoundTrip(req); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}
