package podnet

import (
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
)

func TestMetricsText(t *testing.T) {
	var b strings.Builder
	writeMetrics(&b, api.Status{
		Ready: true, Restarts: 2,
		Interfaces: []api.Interface{{Node: `r"1`, Name: "eth1", Kind: "wire", State: api.StateMade, Carrier: true}, {Name: "eth2", State: api.StateElsewhere}},
		Fabric:     wire.Status{Wires: []wire.WireStatus{{ID: 7, PeerPod: "r2", Up: true, Datapath: "udp", RTT: 1.5, TxFrames: 3, Drops: map[string]uint64{"b": 2, "a": 1}}}},
	})
	want := `# HELP c9s_pod_ready 1 while all that the Pod has of links works.
# TYPE c9s_pod_ready gauge
c9s_pod_ready 1
# HELP c9s_sidecar_restarts_total Restarts of the sidecar in this Pod.
# TYPE c9s_sidecar_restarts_total counter
c9s_sidecar_restarts_total 2
# HELP c9s_interface_carrier 1 while the interface has its cable plugged in.
# TYPE c9s_interface_carrier gauge
c9s_interface_carrier{node="r\"1",interface="eth1",kind="wire"} 1
# HELP c9s_wire_up 1 while the wire carries frames.
# TYPE c9s_wire_up gauge
c9s_wire_up{wire="7",peer="r2",datapath="udp"} 1
# HELP c9s_wire_rtt_seconds Round-trip time of heartbeats.
# TYPE c9s_wire_rtt_seconds gauge
c9s_wire_rtt_seconds{wire="7",peer="r2"} 0.0015
# HELP c9s_wire_loss_ratio Share of heartbeats that were lost.
# TYPE c9s_wire_loss_ratio gauge
c9s_wire_loss_ratio{wire="7",peer="r2"} 0
# HELP c9s_wire_frames_total Frames carried by the udp and local datapaths.
# TYPE c9s_wire_frames_total counter
c9s_wire_frames_total{wire="7",peer="r2",direction="tx"} 3
c9s_wire_frames_total{wire="7",peer="r2",direction="rx"} 0
# HELP c9s_wire_bytes_total Bytes carried by the udp and local datapaths.
# TYPE c9s_wire_bytes_total counter
c9s_wire_bytes_total{wire="7",peer="r2",direction="tx"} 0
c9s_wire_bytes_total{wire="7",peer="r2",direction="rx"} 0
# HELP c9s_wire_drops_total Frames dropped.
# TYPE c9s_wire_drops_total counter
c9s_wire_drops_total{wire="7",peer="r2",reason="a"} 1
c9s_wire_drops_total{wire="7",peer="r2",reason="b"} 2
`
	if got := b.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Only the Pod's own settings are ever written.
func TestSysctlNames(t *testing.T) {
	for _, name := range []string{
		"vm.swappiness", "kernel.core_pattern", "fs.file-max", "kernel.hostname", "net/../vm/swappiness",
		"net..ipv4", "", ".", "net/ipv4/../../kernel/core_pattern", "/net/ipv4/x", "fs.mqueuex",
	} {
		if err := setSysctl(name, "1"); err == nil {
			t.Errorf("sysctl %q was accepted", name)
		}
	}
	// One that the kernel does not have is no error.
	for _, name := range []string{"net.ipv4.conf.c9sx/1.forwarding", "net/ipv4/conf/c9sx.1/forwarding"} {
		if err := setSysctl(name, "1"); err != nil {
			t.Errorf("sysctl %q: %v", name, err)
		}
	}
}
