package podnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
)

var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// maxConns bounds the connections to the server, so that nobody fills the Pod's
// memory; the kubelet and peers have one each, briefly.
const maxConns = 256

// serve answers on the Pod's addresses and on localhost until ctx is done.
func (s *sidecar) serve(ctx context.Context) error {
	server := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 15 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	slots := make(chan struct{}, maxConns)
	ends := make(chan error, 3)
	for _, a := range append([]netip.Addr{localhost}, s.cfg.PodIPs...) {
		l, err := listen(ctx, a)
		if err != nil {
			return errors.Join(err, server.Close())
		}
		go func() { ends <- server.Serve(&limited{l, slots}) }()
	}
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-ends:
		return errors.Join(fmt.Errorf("HTTP server: %w", err), server.Close())
	}
}

// listen waits for the address: an IPv6 one is away for a moment while the
// cluster interface is renamed. IP_FREEBIND takes one that is not there.
func listen(ctx context.Context, a netip.Addr) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if ctl := c.Control(func(fd uintptr) {
			if a.Is4() {
				err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1)
			} else {
				err = unix.SetsockoptInt(int(fd), unix.SOL_IPV6, unix.IPV6_FREEBIND, 1)
			}
		}); ctl != nil {
			return ctl
		}
		return err
	}}
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort(a.String(), strconv.Itoa(contract.StatusPort)))
	if err != nil {
		return nil, fmt.Errorf("serve on %s: %w", a, err)
	}
	return l, nil
}

// limited is a listener that has so many connections at a time.
type limited struct {
	net.Listener
	slots chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, slots: l.slots, open: make(chan struct{}, 1)}, nil
}

type limitedConn struct {
	net.Conn
	slots chan struct{}
	open  chan struct{}
}

func (c *limitedConn) Close() error {
	select {
	case c.open <- struct{}{}:
		<-c.slots
	default:
	}
	return c.Conn.Close()
}

func (s *sidecar) handler() http.Handler {
	mux := http.NewServeMux()
	probe := func(path string, look func() (bool, string)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			ok, why := await(r, look)
			if !ok {
				http.Error(w, why, http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		})
	}
	probe(api.PathStartup, s.startup)
	probe(api.PathReady, s.ready)
	probe(api.PathLive, s.live)
	mux.HandleFunc("GET "+api.PathStatus, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		// A client that went away is the only failure.
		_ = out.Encode(s.status())
	})
	mux.HandleFunc("GET "+api.PathStages, s.serveStage)
	mux.HandleFunc("GET "+api.PathMetrics, s.metrics)
	return mux
}

// awaitEvery is how often a held probe looks at first; longestAwait is the most
// that a probe is held, below the server's own limits.
const (
	awaitEvery   = 20 * time.Millisecond
	longestAwait = 10 * time.Second
)

// await looks until the answer is yes or the request's "wait" is over. A kubelet
// that asks once in a few seconds so learns of a yes when it becomes true (by
// a twentieth of the time later at most), and a no costs it no more requests.
func await(r *http.Request, look func() (bool, string)) (ok bool, why string) {
	ok, why = look()
	wait, err := time.ParseDuration(r.URL.Query().Get(api.QueryWait))
	if ok || err != nil {
		return ok, why
	}
	over := time.NewTimer(min(wait, longestAwait))
	defer over.Stop()
	began := time.Now()
	for !ok {
		select {
		case <-r.Context().Done():
			return ok, why
		case <-over.C:
			return ok, why
		case <-time.After(max(awaitEvery, time.Since(began)/20)):
			ok, why = look()
		}
	}
	return ok, why
}

// serveStage answers for this Pod's nodes, and asks others' sidecars for theirs.
// Only this Pod's own programs have it ask: a chain of questions between Pods
// would be a loop.
func (s *sidecar) serveStage(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	want := contract.WaitFor{Pod: q.Get("pod"), Node: q.Get("node"), Stage: q.Get("stage")}
	if want.Node == "" || want.Stage == "" {
		http.Error(w, "pod, node and stage are needed", http.StatusBadRequest)
		return
	}
	over, mine := s.ownStage(want)
	if !mine {
		if !fromLocal(r) || want.Pod == "" {
			http.Error(w, "node "+want.Node+" is not in this Pod", http.StatusNotFound)
			return
		}
		over = s.asker.ask(r.Context(), want)
	}
	if over {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func fromLocal(r *http.Request) bool {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && at.Addr().Unmap().IsLoopback()
}
