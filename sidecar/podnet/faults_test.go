package podnet

import (
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
)

func faultyLinks(f *contract.Fault, own *contract.Impairment) []contract.Interface {
	return []contract.Interface{
		{Name: "eth1", Node: "R1", Wire: &contract.Wire{ID: 1, PeerPod: "r2", Impairment: own, Fault: f}},
		{Name: "eth2", Node: "R1", Wire: &contract.Wire{ID: 2, PeerPod: "r3"}},
	}
}

// TestFaults: a fault is in effect for its length from when it is seen, whatever the clock of its
// author says, and gives way to the impairment that was there before.
func TestFaults(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	own := &contract.Impairment{DelayMS: 5}
	down := func(author time.Time) *contract.Fault {
		return &contract.Fault{Began: author, LengthMS: 30_000, Impairment: contract.Impairment{DelayMS: 5, Down: true}}
	}
	type look struct {
		after time.Duration
		down  bool
		next  time.Duration // from the start, 0 for never
	}
	for _, tt := range []struct {
		name  string
		begun bool // the sidecar has been there before the fault
		fault *contract.Fault
		looks []look
	}{
		{"seen live", true, down(start), []look{{0, true, 30 * time.Second}, {29 * time.Second, true, 30 * time.Second}, {30 * time.Second, false, 0}}},
		{"the author's clock is ten minutes behind", true, down(start.Add(-10 * time.Minute)), []look{{0, true, 30 * time.Second}, {30 * time.Second, false, 0}}},
		{"the author's clock is ten minutes ahead", true, down(start.Add(10 * time.Minute)), []look{{0, true, 30 * time.Second}, {31 * time.Second, false, 0}}},
		{"the sidecar restarts during the fault", false, down(start.Add(-20 * time.Second)), []look{{0, true, 10 * time.Second}, {10 * time.Second, false, 0}}},
		{"the sidecar restarts after the fault", false, down(start.Add(-time.Hour)), []look{{0, false, 0}}},
		{"the sidecar restarts, its clock is behind", false, down(start.Add(time.Hour)), []look{{0, true, 30 * time.Second}, {30 * time.Second, false, 0}}},
		{"flap", true, &contract.Fault{Began: start, LengthMS: 4000, EveryMS: 2000, OnMS: 1000, Impairment: contract.Impairment{Down: true}},
			[]look{{0, true, time.Second}, {time.Second, false, 2 * time.Second}, {2500 * time.Millisecond, true, 3 * time.Second}, {3 * time.Second, false, 4 * time.Second}, {4 * time.Second, false, 0}}},
	} {
		var f faults
		if tt.begun {
			f.resolve(faultyLinks(nil, own), start.Add(-time.Minute))
		}
		for _, l := range tt.looks {
			want := faultyLinks(tt.fault, own)
			out, next := f.resolve(want, start.Add(l.after))
			var at time.Duration
			if !next.IsZero() {
				at = next.Sub(start)
			}
			got := out[0].Wire.Impairment
			if got == nil || got.Down != l.down || out[0].Wire.Fault != nil || at != l.next {
				t.Errorf("%s: after %s: %+v, next %s; want down %v, next %s", tt.name, l.after, got, at, l.down, l.next)
			}
			if !l.down && tt.fault.EveryMS == 0 && *got != *own {
				t.Errorf("%s: after the fault: %+v", tt.name, got)
			}
			if want[0].Wire.Impairment != own || want[0].Wire.Fault != tt.fault {
				t.Errorf("%s: the document changes", tt.name)
			}
			if out[1].Wire.Impairment != nil {
				t.Errorf("%s: another link: %+v", tt.name, out[1].Wire.Impairment)
			}
		}
	}
}

// TestFaultsOfOnePod: a link inside the Pod keeps its interfaces when a fault ends.
func TestFaultsOfOnePod(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var f faults
	in := []contract.Interface{{Name: "eth1", Node: "R1", Local: &contract.Local{ID: 1, PeerNode: "R2", PeerInterface: "eth1", Fault: &contract.Fault{Began: start, LengthMS: 1000, Impairment: contract.Impairment{Down: true}}}}}
	if out, _ := f.resolve(in, start); out[0].Local.Impairment == nil || !out[0].Local.Impairment.Down {
		t.Errorf("during the fault: %+v", out[0].Local)
	}
	if out, _ := f.resolve(in, start.Add(time.Minute)); out[0].Local.Impairment == nil || out[0].Local.Impairment.Any() {
		t.Errorf("after the fault: %+v", out[0].Local)
	}
}

// TestCutIsNoFault: a link that an impairment takes down does not make its node unready.
func TestCutIsNoFault(t *testing.T) {
	down := &contract.Impairment{Down: true}
	for _, tt := range []struct {
		name   string
		wire   wire.WireStatus
		faulty bool
	}{
		{"up", wire.WireStatus{Up: true}, false},
		{"down though both devices are up", wire.WireStatus{LocalCarrier: true, RemoteCarrier: true}, true},
		{"taken down here", wire.WireStatus{LocalCarrier: true, RemoteCarrier: true, Impairment: down}, false},
		{"taken down by the other end in the Pod", wire.WireStatus{LocalCarrier: true, RemoteCarrier: true, ReverseImpairment: down}, false},
		{"taken down at the far end", wire.WireStatus{LocalCarrier: true, PeerPod: "b", PeerEpoch: 1}, false},
		{"taken down, the peer is lost", wire.WireStatus{LocalCarrier: true, PeerPod: "b", Impairment: down}, true},
	} {
		if got, why := faulty(tt.wire); got != tt.faulty {
			t.Errorf("%s: %v %s", tt.name, got, why)
		}
	}
}
