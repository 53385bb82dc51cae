package controller

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/c9s-lab/c9s/pkg/status"
)

// PathStatus answers with the lab's status as it is now, counters and all.
const PathStatus = "/status"

// readHeader bounds how long a client may take to ask.
const readHeader = 5 * time.Second

// public serves the kubelet's probes and the lab's status.
func (c *controller) public() *http.Server {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, good bool) {
		if !good {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { ok(w, true) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { ok(w, c.alive.Load()) })
	mux.HandleFunc("GET "+PathStatus, func(w http.ResponseWriter, _ *http.Request) {
		if !c.leading.Load() {
			http.Error(w, "another controller leads", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.get())
	})
	return &http.Server{Addr: c.o.Address, Handler: mux, ReadHeaderTimeout: readHeader}
}

// private serves metrics and profiles, on loopback: kubectl port-forward brings
// them to who may.
func (c *controller) private() *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(c.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return &http.Server{Addr: c.o.Private, Handler: mux, ReadHeaderTimeout: readHeader}
}

// metrics are the lab's, by node and link, and the controller's own.
type metrics struct {
	registry *prometheus.Registry
	nodes    *prometheus.GaugeVec
	links    *prometheus.GaugeVec
	rtt      *prometheus.GaugeVec
	drops    *prometheus.GaugeVec
	failures prometheus.Counter
}

func newMetrics() *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		nodes:    gauge("c9s_node_state", "1 for the state that a node is in.", "node", "state"),
		links:    gauge("c9s_link_up", "1 while a link is up.", "a", "b"),
		rtt:      gauge("c9s_link_rtt_seconds", "Round-trip time of a link's heartbeats.", "a", "b"),
		drops:    gauge("c9s_link_drops", "Frames that a link could not carry, since its sidecars started.", "a", "b"),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "c9s_controller_write_failures_total", Help: "Writes to the API server that failed."}),
	}
	m.registry.MustRegister(m.nodes, m.links, m.rtt, m.drops, m.failures, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) set(l status.Lab) {
	for _, v := range []*prometheus.GaugeVec{m.nodes, m.links, m.rtt, m.drops} {
		v.Reset()
	}
	for _, n := range l.Nodes {
		m.nodes.WithLabelValues(n.Name, string(n.State)).Set(1)
	}
	for _, k := range l.Links {
		a, b := k.A.Node+":"+k.A.Interface, k.B.Node+":"+k.B.Interface
		up := 0.0
		if k.Up {
			up = 1
		}
		m.links.WithLabelValues(a, b).Set(up)
		m.rtt.WithLabelValues(a, b).Set(k.RTT / 1000)
		m.drops.WithLabelValues(a, b).Set(float64(k.Drops))
	}
}
