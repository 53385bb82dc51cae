package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/c9s-lab/c9s/pkg/status"
)

// metrics are the lab's, by node and link, and the controller's own. The lab's are
// made when they are asked for: kept, those of a large lab would take more memory
// than all else.
type metrics struct {
	registry *prometheus.Registry
	failures prometheus.Counter
}

func newMetrics(c *controller) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "c9s_controller_write_failures_total", Help: "Writes to the API server that failed."}),
	}
	m.registry.MustRegister(labMetrics{c}, m.failures, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

var (
	nodeState = prometheus.NewDesc("c9s_node_state", "1 for the state that a node is in.", []string{"node", "state"}, nil)
	linkUp    = prometheus.NewDesc("c9s_link_up", "1 while a link is up.", []string{"a", "b"}, nil)
	linkRTT   = prometheus.NewDesc("c9s_link_rtt_seconds", "Round-trip time of a link's heartbeats.", []string{"a", "b"}, nil)
	linkDrops = prometheus.NewDesc("c9s_link_drops", "Frames that a link could not carry, since its sidecars started.", []string{"a", "b"}, nil)
)

// labMetrics are the lab's as it is now; none where another controller leads.
type labMetrics struct{ c *controller }

func (m labMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{nodeState, linkUp, linkRTT, linkDrops} {
		out <- d
	}
}

func (m labMetrics) Collect(out chan<- prometheus.Metric) {
	if m.c.leading.Load() {
		collect(m.c.look(), out)
	}
}

func collect(l status.Lab, out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, n := range l.Nodes {
		gauge(nodeState, 1, n.Name, string(n.State))
	}
	for _, k := range l.Links {
		a, b := k.A.Node+":"+k.A.Interface, k.B.Node+":"+k.B.Interface
		up := 0.0
		if k.Up {
			up = 1
		}
		gauge(linkUp, up, a, b)
		gauge(linkRTT, k.RTT/1000, a, b)
		gauge(linkDrops, float64(k.Drops), a, b)
	}
}
