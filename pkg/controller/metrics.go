package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/c9s-lab/c9s/pkg/observe"
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

// descs describe the metrics of a lab, by name.
var descs = func() map[string]*prometheus.Desc {
	out := map[string]*prometheus.Desc{}
	for _, m := range observe.Metrics() {
		out[m.Name] = prometheus.NewDesc(m.Name, m.Help, append([]string{observe.LabelLab}, m.Labels...), nil)
	}
	return out
}()

// labMetrics are the lab's as it is now; none where another controller leads.
type labMetrics struct{ c *controller }

func (m labMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descs {
		out <- d
	}
}

func (m labMetrics) Collect(out chan<- prometheus.Metric) {
	if m.c.leading.Load() {
		collect(m.c.look(), out)
	}
}

func collect(l status.Lab, out chan<- prometheus.Metric) {
	add := func(m observe.Metric, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if m.Type == observe.Counter {
			kind = prometheus.CounterValue
		}
		out <- prometheus.MustNewConstMetric(descs[m.Name], kind, value, append([]string{l.Name}, labels...)...)
	}
	for _, n := range l.Nodes {
		add(observe.NodeInfo, 1, n.Name, n.Kind, n.PodName, n.Worker)
		add(observe.NodeReady, truth(n.State == status.StateReady), n.Name)
		add(observe.NodeState, 1, n.Name, string(n.State))
		add(observe.NodeRestarts, float64(n.Restarts), n.Name)
	}
	for _, k := range l.Links {
		a, b := k.A.Node+":"+k.A.Interface, k.B.Node+":"+k.B.Interface
		if k.B.Node == "" { // it leaves the lab
			b = k.Kind
		}
		add(observe.LinkUp, truth(k.Up), a, b)
		add(observe.LinkInfo, 1, a, b, k.Datapath)
		add(observe.LinkImpaired, truth(k.A.Impairment != nil || k.B.Impairment != nil), a, b)
		add(observe.LinkRTT, k.RTT/1000, a, b)
		add(observe.LinkLoss, k.Loss/100, a, b)
		add(observe.LinkDropped, float64(k.Drops), a, b)
		add(observe.LinkBytes, float64(k.TxBytes), a, b)
		add(observe.LinkBytes, float64(k.RxBytes), b, a)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
