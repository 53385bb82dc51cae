//go:build linux

package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Options are the settings of a Fabric that do not change while it runs.
type Options struct {
	Lab string
	// Pod is the Kubernetes name of this Pod: peers know it by that.
	Pod string
	// Port is UDP, 0 for contract.WirePort. All Pods of a lab have the same.
	Port int
	// Key is the lab's; without one only addresses that Resolver gives are
	// believed.
	Key []byte
	// Encrypt seals the frames (AES-256-GCM). All Pods of a lab agree on it. It
	// needs a key.
	Encrypt bool
	// Underlay is the interface of the Pod network.
	Underlay string
	// Device is the descriptor of the devices' network namespace, where that is not
	// the caller's; 0 for none.
	Device int
	// VXLANPort is UDP, 0 for contract.VXLANPort.
	VXLANPort int
	// AskPort is TCP: the processes of all Pods of a lab listen there. A peer that is
	// silent, but takes connections there, is not lost: it gets no processor time. 0
	// for none.
	AskPort int
	// Epoch is greater than that of every earlier process of this Pod: a peer takes the
	// greatest. 0 for the clock's nanoseconds.
	Epoch    uint64
	Resolver Resolver
	Log      *slog.Logger

	// noOffload does without virtio-net headers and UDP segmentation, noSegment
	// without the latter, for tests.
	noOffload, noSegment bool
	// more are datapaths for tests, preferred to those of datapaths.
	more []offer
}

// Resolver knows where Pods are.
type Resolver interface {
	// Lookup gives the present addresses of a Pod. No address and no error means
	// that it is not known yet.
	Lookup(ctx context.Context, pod string) ([]netip.Addr, error)
}

// Wire is the desired state of one wire's end, or of a wire inside the Pod.
type Wire struct {
	ID      contract.WireID
	PeerPod string
	// Leg is this end's leg: the sidecar's side of the veth pair whose other side
	// the device has. A new LegIndex means that it was made anew; 0 looks it up.
	Leg      string
	LegIndex int
	// LocalLeg, instead of PeerPod, is the leg of the other end in this Pod.
	LocalLeg   string
	LocalIndex int
	// MTU of the link, bytes of IP packet.
	MTU int
	// Datapath is auto, udp or vxlan; "" is auto.
	Datapath string
	// Plain tells that the device cannot take super-frames and unfinished
	// checksums: they are segmented and finished before they are delivered.
	Plain bool
	// Impairment of what this end sends (from Leg to LocalLeg), nil for none;
	// ReverseImpairment of what LocalLeg sends.
	Impairment        *contract.Impairment
	ReverseImpairment *contract.Impairment
}

// maxWireID is the greatest that fits a VXLAN's number (RFC 7348, 5).
const maxWireID = 1<<24 - 1

// check tells all that is wrong with a desired state.
func check(wires []Wire, others []offer) error {
	var errs []error
	bad := func(w Wire, format string, args ...any) {
		errs = append(errs, fmt.Errorf("wire %d: %s", w.ID, fmt.Sprintf(format, args...)))
	}
	ids, legs := map[contract.WireID]bool{}, map[string]contract.WireID{}
	for _, w := range wires {
		if w.ID < 1 || w.ID > maxWireID {
			bad(w, "the id is not within 1 and %d", maxWireID)
		}
		if ids[w.ID] {
			bad(w, "it is there twice")
		}
		ids[w.ID] = true
		if (w.PeerPod == "") == (w.LocalLeg == "") {
			bad(w, "it needs a peer Pod or a second leg, and not both")
		}
		if w.Datapath != "" && w.Datapath != DatapathAuto && w.Datapath != DatapathUDP &&
			!slices.ContainsFunc(others, func(o offer) bool { return o.name == w.Datapath }) {
			bad(w, "no datapath %q", w.Datapath)
		}
		for _, leg := range []string{w.Leg, w.LocalLeg} {
			if leg == "" {
				if leg == w.Leg {
					bad(w, "it has no leg")
				}
				continue
			}
			if other, ok := legs[leg]; ok {
				bad(w, "leg %s is that of wire %d", leg, other)
			}
			legs[leg] = w.ID
		}
	}
	return errors.Join(errs...)
}
