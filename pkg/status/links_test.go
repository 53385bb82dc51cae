package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// sidecarOf is the answer of a Pod with one interface, eth1 of node.
func sidecarOf(node, peer, state string, w wire.WireStatus) api.Status {
	return api.Status{
		Interfaces: []api.Interface{{Node: node, Name: "eth1", Kind: "wire", Wire: 7, PeerNode: peer, PeerInterface: "eth1", State: state, Carrier: true}},
		Fabric:     wire.Status{Wires: []wire.WireStatus{w}},
	}
}

func TestLinks(t *testing.T) {
	end := func(node string) End {
		return End{Node: node, Interface: "eth1", Known: true, Carrier: true, State: api.StateMade}
	}
	up := wire.WireStatus{ID: 7, Up: true, Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}
	for name, c := range map[string]struct {
		sidecars map[string]api.Status
		want     []Link
	}{
		"nobody answers": {nil, []Link{}},
		"both ends": {
			map[string]api.Status{"b": sidecarOf("B", "A", api.StateMade, up), "a": sidecarOf("A", "B", api.StateMade, up)},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: end("B"), Up: true, Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}},
		},
		"one end unknown": {
			map[string]api.Status{"b": sidecarOf("B", "A", api.StateMade, wire.WireStatus{ID: 7, Reason: "A is not heard"})},
			[]Link{{ID: 7, Kind: "wire", A: end("B"), B: End{Node: "A", Interface: "eth1"}, Reason: "A is not heard"}},
		},
		"drops of both, but for the impairment's": {
			map[string]api.Status{
				"a": sidecarOf("A", "B", api.StateMade, wire.WireStatus{ID: 7, Up: true, Drops: map[string]uint64{"impairment": 100, "queue": 2}}),
				"b": sidecarOf("B", "A", api.StateMade, wire.WireStatus{ID: 7, Up: true, Drops: map[string]uint64{"queue": 3}}),
			},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: end("B"), Up: true, Drops: 5}},
		},
		"held at the far end": {
			map[string]api.Status{"a": sidecarOf("A", "B", api.StateMade, up), "b": {Interfaces: []api.Interface{
				{Node: "B", Name: "eth1", Kind: "wire", Wire: 7, State: api.StateHeld, Error: "waits for stage configure of A"}}}},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: End{Node: "B", Interface: "eth1", Known: true, State: api.StateHeld, Error: "waits for stage configure of A"},
				Reason: "waits for stage configure of A", Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}},
		},
		"held at this end": {
			map[string]api.Status{"a": {Interfaces: []api.Interface{{Node: "A", Name: "eth1", Kind: "wire", Wire: 7, PeerNode: "B", PeerInterface: "eth1", State: api.StateHeld, Error: "waits"}}}},
			[]Link{{ID: 7, Kind: "wire", A: End{Node: "A", Interface: "eth1", Known: true, State: api.StateHeld, Error: "waits"}, B: End{Node: "B", Interface: "eth1"}, Reason: "waits"}},
		},
		"within a Pod": {
			map[string]api.Status{"a": {Interfaces: []api.Interface{
				{Node: "A", Name: "eth1", Kind: "local", Wire: 9, PeerNode: "A2", PeerInterface: "eth1", State: api.StateMade, Carrier: true},
				{Node: "A2", Name: "eth1", Kind: "local", Wire: 9, PeerNode: "A", PeerInterface: "eth1", State: api.StateMade, Carrier: true}}}},
			[]Link{{ID: 9, Kind: "local", A: end("A"), B: end("A2"), Up: true, Datapath: "kernel"}},
		},
		"without a far end": {
			map[string]api.Status{"a": {Interfaces: []api.Interface{
				{Node: "A", Name: "eth2", Kind: "macvlan", State: api.StateFailed, Error: "the worker has no eth9"},
				{Node: "A", Name: "eth1", Kind: "host", State: api.StateMade, Carrier: true}}}},
			[]Link{
				{Kind: "host", A: end("A"), Up: true},
				{Kind: "macvlan", A: End{Node: "A", Interface: "eth2", Known: true, State: api.StateFailed, Error: "the worker has no eth9"}, Reason: "the worker has no eth9"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Links(c.sidecars)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
