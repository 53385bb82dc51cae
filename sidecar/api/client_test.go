package api

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/c9s-lab/c9s/internal/foreign"
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

// A device that answers in its sidecar's place fills nobody's memory.
func TestAnswersAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.8", strconv.Itoa(contract.StatusPort)))
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int64
	endless := func(w http.ResponseWriter) {
		chunk := []byte(strings.Repeat(" ", 1<<16))
		for range 16 * foreign.MaxStatus / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
			sent.Add(int64(len(chunk)))
		}
	}
	elements := func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"interfaces":[`+strings.Repeat("{},", foreign.MaxElements+1)+`{}]}`)
	}
	var answer atomic.Pointer[func(http.ResponseWriter)]
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { (*answer.Load())(w) })}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	for want, f := range map[string]func(http.ResponseWriter){"larger than": endless, "more than": elements} {
		answer.Store(&f)
		if _, err := Fetch(t.Context(), nil, netip.MustParseAddr("127.0.0.8")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if n := sent.Load(); n > 4*foreign.MaxStatus {
		t.Errorf("%d bytes were read", n)
	}
}
