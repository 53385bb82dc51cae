package podnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/door"
	"github.com/c9s-lab/c9s/sidecar/link"
)

// admission bounds what anybody can make of the server. Its seats bound the Pod's
// memory; the kubelet has three probes at a time, peers one question each, briefly.
func admission(own func(netip.Addr) bool) *door.Door {
	return door.New(door.Options{
		Own: own, Seats: 192, OwnSeats: 32, PerSource: 16, Holds: 64, HoldsPerSource: 4, Trusted: 4,
	})
}

// serve answers on the Pod's addresses and on the sockets of its containers until ctx is
// done.
func (s *sidecar) serve(ctx context.Context) error {
	server := newServer(s.handler())
	// What comes by a socket has no address.
	guarded := admission(func(a netip.Addr) bool { return !a.IsValid() || slices.Contains(s.cfg.PodIPs, a) })
	listeners, err := s.sockets()
	for _, a := range s.cfg.PodIPs {
		l, lErr := listen(ctx, a)
		listeners, err = append(listeners, l), errors.Join(err, lErr)
	}
	if err != nil {
		for _, l := range listeners {
			if l != nil {
				l.Close()
			}
		}
		return err
	}
	ends := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ends <- server.Serve(guarded.Listener(l)) }()
	}
	select {
	case <-ctx.Done():
		return server.Close()
	case err := <-ends:
		return errors.Join(fmt.Errorf("HTTP server: %w", err), server.Close())
	}
}

func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 15 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		ConnContext: door.Context,
	}
}

// listen takes the address before the cluster interface has it (IP_FREEBIND).
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

func (s *sidecar) handler() http.Handler {
	probe := func(look func() (bool, string)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			ok, why := await(r, look)
			if !ok {
				http.Error(w, why, http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		}
	}
	return door.Routes{
		api.PathStartup: trusting(func() bool { return !s.begins.Load() }, probe(s.startup)),
		api.PathReady:   probe(s.ready),
		api.PathLive:    probe(s.live),
		api.PathStatus:  door.Bounded(s.serveStatus),
		api.PathStages:  door.Bounded(s.serveStage),
		api.PathBridge:  door.Bounded(s.serveBridge),
		api.PathBoot:    s.serveBoot,
		api.PathLogin:   s.serveLogin,
		api.PathMetrics: door.Bounded(s.metrics),
	}
}

// trusting trusts early clients: before its devices run, hardly anything but the kubelet
// knows the Pod.
func trusting(early func() bool, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if g := door.Of(r); g != nil && early() {
			g.Trust()
		}
		next(w, r)
	}
}

// awaitEvery is how often a held probe checks at first. longestAwait limits how long a probe
// is held: as long as the kubelet waits for an answer.
const (
	awaitEvery   = 20 * time.Millisecond
	longestAwait = 5 * time.Second
)

// await checks until the answer is yes or the request's "wait" is over. A kubelet that
// probes every few seconds then receives a yes when it becomes true (delayed by at most a
// twentieth of the time), and a no causes no more requests.
func await(r *http.Request, look func() (bool, string)) (ok bool, why string) {
	ok, why = look()
	wait, err := time.ParseDuration(r.URL.Query().Get(api.QueryWait))
	if ok || err != nil {
		return ok, why
	}
	// One too many is answered at once.
	release, held := door.Hold(r)
	if !held {
		return ok, why
	}
	defer release()
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
		if !fromLocal(r) || !waitsFor(s.manifest(), want) {
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

// serveBoot takes the controller's answer to a Pod that waits for its turn to boot.
func (s *sidecar) serveBoot(w http.ResponseWriter, r *http.Request) {
	var t *turn
	if g := s.look().gate; g != nil {
		t = g.turn
	}
	t.serve(w, r)
}

// serveBridge shows a bridge node to this Pod's own programs.
func (s *sidecar) serveBridge(w http.ResponseWriter, r *http.Request) {
	if !fromLocal(r) {
		http.NotFound(w, r)
		return
	}
	q := r.URL.Query()
	var text string
	err := s.own.Do(func() (err error) {
		text, err = link.ShowBridge(q.Get("node"), q.Get("object"))
		return err
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprint(w, text)
}

// waitsFor reports whether a program of the Pod waits for the stage. Nothing else is
// asked of other Pods: a device could have any name looked up, and any address asked.
func waitsFor(m *contract.Manifest, want contract.WaitFor) bool {
	for _, n := range m.Nodes {
		for _, c := range n.Containers {
			for _, step := range c.Program.Steps {
				if slices.Contains(step.WaitFor, want) {
					return true
				}
			}
		}
	}
	return false
}

// fromLocal reports whether a container of this Pod asks.
func fromLocal(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr)
	return ok && at != nil
}
