//go:build !nocluster

package cli

import (
	"strings"
	"testing"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// What is old, impaired, left over or unknown is said, and the counts are of all that the
// topology has.
func TestPrintStatus(t *testing.T) {
	end := func(node string, loss float64) status.End {
		e := status.End{Node: node, Interface: "eth1"}
		if loss > 0 {
			e.Impairment = &contract.Impairment{Loss: loss}
		}
		return e
	}
	l := status.Lab{
		Name: "demo", Namespace: "ns", State: status.LabDegraded,
		Nodes: []status.Node{
			{Name: "R1", State: status.StateReady, Age: new(0.4), Mesh: "up", MeshPeers: 3, MeshLost: []string{"r2"}},
			{Name: "R2", State: status.StateDegraded, Age: new(12.0), Reason: "its sidecar is silent", Mesh: "down"},
			{Name: "R3", State: status.StateStopped},
		},
		Links: []status.Link{
			{ID: 1, A: end("R1", 100), B: end("R2", 0), State: status.LinkUp, Up: true, Reason: "impaired: from R1 loss 100%", Datapath: "udp", RTT: 0.84},
			{ID: 2, A: end("R2", 0), B: end("R3", 0), State: status.LinkDown, Reason: "node R3 is stopped"},
			{ID: 3, A: end("R2", 0), B: end("R4", 0), State: status.LinkUnknown, Age: 0},
			{ID: 4, A: end("R2", 0), B: end("R1", 0), State: status.LinkUp, Up: true, Age: 12},
		},
		Leftover: []status.Leftover{{Nodes: "R9", Pod: "r9"}},
	}
	for wide, want := range map[bool][]string{
		false: {
			"lab demo (namespace ns): degraded; 1 of 3 nodes ready, 2 of 4 links up",
			"R1 - ready 0 - - -", "R2 - degraded (12s ago) 0 - - - its sidecar is silent", "R3 - stopped 0",
			"R9 is no longer in the topology but still in the cluster",
			"R1:eth1 R2:eth1 up 0.84ms 0 udp impaired: from R1 loss 100%", "R2:eth1 R3:eth1 down - 0 - node R3 is stopped",
			"R2:eth1 R4:eth1 unknown", "R2:eth1 R1:eth1 up (12s ago)",
		},
		true: {"MESH", "R1 - ready 0 - - - up 2/3", "R2 - degraded (12s ago) 0 - - - down", "IMPAIRMENT", "udp from R1 loss 100% 1"},
	} {
		var out strings.Builder
		if err := printStatus(&out, l, wide); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("wide %v: %q is not in\n%s", wide, w, out.String())
			}
		}
	}
}
