package api

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// A sidecar, or what has taken its address, sends its clients nowhere else.
func TestClientsFollowNoRedirect(t *testing.T) {
	var followed atomic.Int32
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.9", strconv.Itoa(contract.StatusPort)))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/secret" {
			followed.Add(1)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		http.Redirect(w, r, "/secret", http.StatusTemporaryRedirect)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	at := netip.MustParseAddr("127.0.0.9")
	for _, client := range []*http.Client{nil, {}} {
		if _, err := Fetch(t.Context(), client, at); err == nil {
			t.Error("a redirect was taken for a status")
		}
		if over, err := Over(t.Context(), client, at, contract.WaitFor{}); over || err == nil {
			t.Errorf("a redirect was taken for an answer: %v, %v", over, err)
		}
	}
	if n := followed.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}
