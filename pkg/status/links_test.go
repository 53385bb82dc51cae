package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// wired is a link of two nodes, both at eth1.
func wired(id contract.WireID, a, b string) contract.TopologyLink {
	return contract.TopologyLink{ID: id, Kind: "wire", A: contract.TopologyEnd{Node: a, Interface: "eth1"}, B: &contract.TopologyEnd{Node: b, Interface: "eth1"}}
}

// answerOf is the answer of a Pod with one interface, eth1 of node.
func answerOf(node, peer, state string, w wire.WireStatus) Answer {
	return Answer{Status: api.Status{
		Interfaces: []api.Interface{{Node: node, Name: "eth1", Kind: "wire", Wire: 7, PeerNode: peer, PeerInterface: "eth1", State: state, Carrier: true}},
		Fabric:     wire.Status{Wires: []wire.WireStatus{w}},
	}}
}

func aged(age time.Duration, a Answer) Answer {
	a.Age = age
	return a
}

func interfaces(list ...api.Interface) Answer {
	return Answer{Status: api.Status{Interfaces: list}}
}

func TestLinks(t *testing.T) {
	end := func(node string) End {
		return End{Node: node, Interface: "eth1", Known: true, Carrier: true, State: api.StateMade}
	}
	unseen := func(node string) End { return End{Node: node, Interface: "eth1"} }
	up := wire.WireStatus{ID: 7, Up: true, Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}
	lost := wire.WireStatus{ID: 7, Reason: "A is not heard"}
	delay := &contract.Impairment{DelayMS: 50, Loss: 100}
	impaired := up
	impaired.Impairment = delay
	one := []contract.TopologyLink{wired(7, "A", "B")}
	for name, c := range map[string]struct {
		wanted   []contract.TopologyLink
		sidecars map[string]Answer
		want     []Link
	}{
		"nobody answers":              {one, nil, []Link{{ID: 7, Kind: "wire", A: unseen("A"), B: unseen("B"), State: LinkUnknown, Reason: "no sidecar of its ends has answered"}}},
		"nobody answers, and no list": {nil, nil, []Link{}},
		"both ends": {one,
			map[string]Answer{"b": answerOf("B", "A", api.StateMade, up), "a": answerOf("A", "B", api.StateMade, up)},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: end("B"), State: LinkUp, Up: true, Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}},
		},
		"both ends, and no list": {nil,
			map[string]Answer{"b": answerOf("B", "A", api.StateMade, up), "a": answerOf("A", "B", api.StateMade, up)},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: end("B"), State: LinkUp, Up: true, Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}},
		},
		"one end unknown": {one,
			map[string]Answer{"b": answerOf("B", "A", api.StateMade, lost)},
			[]Link{{ID: 7, Kind: "wire", A: unseen("A"), B: end("B"), State: LinkDown, Reason: "A is not heard"}},
		},
		"the second end alone counts bytes the other way": {one,
			map[string]Answer{"b": answerOf("B", "A", api.StateMade, up)},
			[]Link{{ID: 7, Kind: "wire", A: unseen("A"), B: end("B"), State: LinkUp, Up: true, Datapath: "vxlan", RTT: 1.5, TxBytes: 20, RxBytes: 10}},
		},
		"the ends disagree": {one,
			map[string]Answer{"a": answerOf("A", "B", api.StateMade, up), "b": answerOf("B", "A", api.StateMade, lost)},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: end("B"), State: LinkDegraded, Reason: "A is not heard", Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}},
		},
		"an end is cut off, the other tells": {one,
			map[string]Answer{"a": aged(9*time.Second, answerOf("A", "B", api.StateMade, up)), "b": answerOf("B", "A", api.StateMade, lost)},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: end("B"), State: LinkDown, Reason: "A is not heard", Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}},
		},
		"both ends are cut off": {one,
			map[string]Answer{"a": aged(9*time.Second, answerOf("A", "B", api.StateMade, up)), "b": aged(8*time.Second, answerOf("B", "A", api.StateMade, up))},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: end("B"), State: LinkUp, Up: true, Age: 9, Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}},
		},
		"impaired": {one,
			map[string]Answer{"a": answerOf("A", "B", api.StateMade, impaired), "b": answerOf("B", "A", api.StateMade, up)},
			[]Link{{ID: 7, Kind: "wire", A: End{Node: "A", Interface: "eth1", Known: true, Carrier: true, State: api.StateMade, Impairment: delay}, B: end("B"),
				State: LinkUp, Up: true, Reason: "impaired: from A delay 50ms loss 100%", Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}},
		},
		"drops of both, but for the impairment's": {one,
			map[string]Answer{
				"a": answerOf("A", "B", api.StateMade, wire.WireStatus{ID: 7, Up: true, Drops: map[string]uint64{"impairment-loss": 100, "queue": 2}}),
				"b": answerOf("B", "A", api.StateMade, wire.WireStatus{ID: 7, Up: true, Drops: map[string]uint64{"queue": 3}}),
			},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: end("B"), State: LinkUp, Up: true, Drops: 5}},
		},
		"held at the far end": {one,
			map[string]Answer{"a": answerOf("A", "B", api.StateMade, up),
				"b": interfaces(api.Interface{Node: "B", Name: "eth1", Kind: "wire", Wire: 7, State: api.StateHeld, Error: "waits for stage configure of A"})},
			[]Link{{ID: 7, Kind: "wire", A: end("A"), B: End{Node: "B", Interface: "eth1", Known: true, State: api.StateHeld, Error: "waits for stage configure of A"},
				State: LinkDown, Reason: "waits for stage configure of A", Datapath: "vxlan", RTT: 1.5, TxBytes: 10, RxBytes: 20}},
		},
		"not started": {one,
			map[string]Answer{"a": interfaces(api.Interface{Node: "A", Name: "eth1", Kind: "wire", Wire: 7, State: api.StateMade})},
			[]Link{{ID: 7, Kind: "wire", A: End{Node: "A", Interface: "eth1", Known: true, State: api.StateMade}, B: unseen("B"), State: LinkDown, Reason: "its wire has not started"}},
		},
		"renamed, and the sidecars do not know yet": {
			[]contract.TopologyLink{{ID: 8, Kind: "wire", A: contract.TopologyEnd{Node: "A", Interface: "eth2"}, B: &contract.TopologyEnd{Node: "B", Interface: "eth1"}}},
			map[string]Answer{"a": answerOf("A", "B", api.StateMade, up), "b": answerOf("B", "A", api.StateMade, up)},
			[]Link{{ID: 8, Kind: "wire", A: End{Node: "A", Interface: "eth2"}, B: unseen("B"), State: LinkUnknown, Reason: "no sidecar of its ends has answered"}},
		},
		"within a Pod": {
			[]contract.TopologyLink{{ID: 9, Kind: "local", A: contract.TopologyEnd{Node: "A", Interface: "eth1"}, B: &contract.TopologyEnd{Node: "A2", Interface: "eth1"}}},
			map[string]Answer{"a": interfaces(
				api.Interface{Node: "A", Name: "eth1", Kind: "local", Wire: 9, State: api.StateMade, Carrier: true},
				api.Interface{Node: "A2", Name: "eth1", Kind: "local", Wire: 9, State: api.StateMade, Carrier: true})},
			[]Link{{ID: 9, Kind: "local", A: end("A"), B: end("A2"), State: LinkUp, Up: true, Datapath: "kernel"}},
		},
		"without a far end": {
			[]contract.TopologyLink{{Kind: "host", A: contract.TopologyEnd{Node: "A", Interface: "eth1"}}, {Kind: "macvlan", A: contract.TopologyEnd{Node: "A", Interface: "eth2"}}},
			map[string]Answer{"a": interfaces(
				api.Interface{Node: "A", Name: "eth2", Kind: "macvlan", State: api.StateFailed, Error: "the worker has no eth9"},
				api.Interface{Node: "A", Name: "eth1", Kind: "host", State: api.StateMade, Carrier: true})},
			[]Link{
				{Kind: "host", A: end("A"), State: LinkUp, Up: true},
				{Kind: "macvlan", A: End{Node: "A", Interface: "eth2", Known: true, State: api.StateFailed, Error: "the worker has no eth9"}, State: LinkDown, Reason: "the worker has no eth9"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Links(c.wanted, c.sidecars)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A report of links that are not wanted any more, or of one with other ends, says
// nothing; what is wanted is listed, whoever has reported on it.
func TestAdopt(t *testing.T) {
	wanted := []contract.TopologyLink{wired(1, "A", "B"), wired(2, "C", "D"), wired(3, "E", "F")}
	reported := []Link{
		{ID: 1, A: End{Node: "A", Interface: "eth1"}, B: End{Node: "B", Interface: "eth1"}, State: LinkUp, Up: true},
		{ID: 2, A: End{Node: "C", Interface: "eth9"}, B: End{Node: "D", Interface: "eth1"}, State: LinkUp, Up: true},
		{ID: 9, A: End{Node: "X", Interface: "eth1"}, State: LinkUp, Up: true},
	}
	got := Adopt(wanted, reported)
	if len(got) != 3 || got[0].State != LinkUp || got[1].State != LinkUnknown || got[2].State != LinkUnknown || got[1].A.Interface != "eth1" {
		t.Errorf("%+v", got)
	}
	if got := Adopt(nil, reported); len(got) != 3 {
		t.Errorf("without a list: %+v", got)
	}
}
