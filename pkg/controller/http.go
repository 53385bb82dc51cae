package controller

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// PathStatus answers with the lab's status as it is now, counters and all.
const PathStatus = "/status"

// readHeader bounds how long a client may take to ask.
const readHeader = 5 * time.Second

// public serves the kubelet's probes, the lab's status and its metrics.
func (c *controller) public() *http.Server {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, good bool) {
		if !good {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { ok(w, true) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { ok(w, c.alive.Load()) })
	mux.HandleFunc("GET "+PathNews, c.serveNews)
	mux.HandleFunc("GET "+PathStatus, func(w http.ResponseWriter, _ *http.Request) {
		if !c.leading.Load() {
			http.Error(w, "another controller leads", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.look())
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(c.metrics.registry, promhttp.HandlerOpts{}))
	return &http.Server{Addr: c.o.Address, Handler: mux, ReadHeaderTimeout: readHeader}
}

// private serves profiles, on loopback: users with the right to do so reach them by kubectl
// port-forward.
func (c *controller) private() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return &http.Server{Addr: c.o.Private, Handler: mux, ReadHeaderTimeout: readHeader}
}
