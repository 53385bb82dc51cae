package podnet

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/c9s-lab/c9s/sidecar/api"
)

// metrics is the status as Prometheus reads it, made when it is asked for.
func (s *sidecar) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{s})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2})
}

type collector struct{ s *sidecar }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("c9s_"+name, help, labels, nil)
}

var (
	descReady    = desc("pod_ready", "1 while all that the Pod has of links works.")
	descRestarts = desc("sidecar_restarts_total", "Restarts of the sidecar in this Pod.")
	descCarrier  = desc("interface_carrier", "1 while the interface has its cable plugged in.", "node", "interface", "kind")
	descUp       = desc("wire_up", "1 while the wire carries frames.", "wire", "peer", "datapath")
	descRTT      = desc("wire_rtt_seconds", "Round-trip time of heartbeats.", "wire", "peer")
	descLoss     = desc("wire_loss_ratio", "Share of heartbeats that were lost.", "wire", "peer")
	descFrames   = desc("wire_frames_total", "Frames carried by the udp and local datapaths.", "wire", "peer", "direction")
	descBytes    = desc("wire_bytes_total", "Bytes carried by the udp and local datapaths.", "wire", "peer", "direction")
	descDrops    = desc("wire_drops_total", "Frames dropped.", "wire", "peer", "reason")
	descStray    = desc("fabric_dropped_datagrams_total", "Datagrams dropped that belong to no wire.", "reason")
	descPeers    = desc("mgmt_peers", "Pods talked to on the management network lately.")
)

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descReady, descRestarts, descCarrier, descUp, descRTT, descLoss, descFrames, descBytes, descDrops, descStray, descPeers} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	st := c.s.status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(descReady, truth(st.Ready))
	count(descRestarts, uint64(st.Restarts))
	for _, i := range st.Interfaces {
		if i.State == api.StateMade {
			gauge(descCarrier, truth(i.Carrier), i.Node, i.Name, i.Kind)
		}
	}
	for _, w := range st.Fabric.Wires {
		id := strconv.FormatUint(uint64(w.ID), 10)
		gauge(descUp, truth(w.Up), id, w.PeerPod, w.Datapath)
		gauge(descRTT, w.RTT/1000, id, w.PeerPod)
		gauge(descLoss, w.Loss, id, w.PeerPod)
		count(descFrames, w.TxFrames, id, w.PeerPod, "tx")
		count(descFrames, w.RxFrames, id, w.PeerPod, "rx")
		count(descBytes, w.TxBytes, id, w.PeerPod, "tx")
		count(descBytes, w.RxBytes, id, w.PeerPod, "rx")
		for reason, n := range w.Drops {
			count(descDrops, n, id, w.PeerPod, reason)
		}
	}
	for reason, n := range st.Fabric.Dropped {
		count(descStray, n, reason)
	}
	if st.Mgmt != nil {
		gauge(descPeers, float64(len(st.Mgmt.Peers)))
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
