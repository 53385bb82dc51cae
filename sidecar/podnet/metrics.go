package podnet

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/sidecar/api"
)

// metrics is the status in Prometheus' text format, version 0.0.4. It is written
// by hand: the client library brings protobuf along, which costs every Pod a
// megabyte of memory, for gauges and counters that are kept elsewhere anyway.
func (s *sidecar) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	out := bufio.NewWriter(w)
	writeMetrics(out, s.status())
	// A client that went away is the only failure.
	_ = out.Flush()
}

// family is one metric with all its samples.
type family struct {
	name, kind, help string
	samples          []string
}

const (
	gauge   = "gauge"
	counter = "counter"
)

// add notes a sample; labels are names and values in turn.
func (f *family) add(value float64, labels ...string) {
	var b strings.Builder
	b.WriteString("c9s_" + f.name)
	for i := 0; i+1 < len(labels); i += 2 {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		b.WriteString(separator + labels[i] + `="` + labelEscaper.Replace(labels[i+1]) + `"`)
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64))
	f.samples = append(f.samples, b.String())
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (f *family) write(w io.Writer) {
	if len(f.samples) == 0 {
		return
	}
	fmt.Fprintf(w, "# HELP c9s_%s %s\n# TYPE c9s_%s %s\n%s\n", f.name, f.help, f.name, f.kind, strings.Join(f.samples, "\n"))
}

func writeMetrics(w io.Writer, st api.Status) {
	ready := family{name: "pod_ready", kind: gauge, help: "1 while all that the Pod has of links works."}
	restarts := family{name: "sidecar_restarts_total", kind: counter, help: "Restarts of the sidecar in this Pod."}
	carrier := family{name: "interface_carrier", kind: gauge, help: "1 while the interface has its cable plugged in."}
	peers := family{name: "mgmt_peers", kind: gauge, help: "Pods talked to on the management network lately."}
	ready.add(truth(st.Ready))
	restarts.add(float64(st.Restarts))
	for _, i := range st.Interfaces {
		if i.State == api.StateMade {
			carrier.add(truth(i.Carrier), "node", i.Node, "interface", i.Name, "kind", i.Kind)
		}
	}
	if st.Mgmt != nil {
		peers.add(float64(len(st.Mgmt.Peers)))
	}
	for _, f := range append([]family{ready, restarts, carrier, peers}, wireFamilies(st)...) {
		f.write(w)
	}
}

func wireFamilies(st api.Status) []family {
	up := family{name: "wire_up", kind: gauge, help: "1 while the wire carries frames."}
	rtt := family{name: "wire_rtt_seconds", kind: gauge, help: "Round-trip time of heartbeats."}
	loss := family{name: "wire_loss_ratio", kind: gauge, help: "Share of heartbeats that were lost."}
	frames := family{name: "wire_frames_total", kind: counter, help: "Frames carried by the udp and local datapaths."}
	bytes := family{name: "wire_bytes_total", kind: counter, help: "Bytes carried by the udp and local datapaths."}
	drops := family{name: "wire_drops_total", kind: counter, help: "Frames dropped."}
	stray := family{name: "fabric_dropped_datagrams_total", kind: counter, help: "Datagrams dropped that belong to no wire."}
	for _, w := range st.Fabric.Wires {
		labels := []string{"wire", strconv.FormatUint(uint64(w.ID), 10), "peer", w.PeerPod}
		with := func(more ...string) []string { return append(labels[:len(labels):len(labels)], more...) }
		up.add(truth(w.Up), with("datapath", w.Datapath)...)
		rtt.add(w.RTT/1000, labels...)
		loss.add(w.Loss, labels...)
		frames.add(float64(w.TxFrames), with("direction", "tx")...)
		frames.add(float64(w.RxFrames), with("direction", "rx")...)
		bytes.add(float64(w.TxBytes), with("direction", "tx")...)
		bytes.add(float64(w.RxBytes), with("direction", "rx")...)
		for _, reason := range sorted(w.Drops) {
			drops.add(float64(w.Drops[reason]), with("reason", reason)...)
		}
	}
	for _, reason := range sorted(st.Fabric.Dropped) {
		stray.add(float64(st.Fabric.Dropped[reason]), "reason", reason)
	}
	return []family{up, rtt, loss, frames, bytes, drops, stray}
}

func sorted(counts map[string]uint64) []string { return slices.Sorted(maps.Keys(counts)) }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
