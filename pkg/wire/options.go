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
	// Pod is the Kubernetes name of this Pod, by which peers identify it.
	Pod string
	// Port is the UDP port, 0 for contract.WirePort. All Pods of a lab use the same one.
	Port int
	// Key is the lab's. Without a key, peers are accepted only from addresses that
	// Resolver returns.
	Key []byte
	// Encrypt encrypts the frames (AES-256-GCM). All Pods of a lab must have the same
	// setting. It requires a key.
	Encrypt bool
	// Underlay is the interface of the Pod network.
	Underlay string
	// Device is the descriptor of the devices' network namespace. 0: that of the
	// caller.
	Device int
	// VXLANPort is the UDP port of vxlan, 0 for contract.VXLANPort.
	VXLANPort int
	// Folder is the descriptor of the folder of the worker where the local datapath finds
	// other Pods. 0: none.
	Folder int
	// AskPort is a TCP port on which the processes of all Pods of a lab listen. A
	// silent peer that accepts connections there is not lost: it gets no processor
	// time. 0: none.
	AskPort int
	// Epoch must be greater than that of every earlier process of this Pod: a peer
	// accepts the greatest. 0: nanoseconds of the clock.
	Epoch    uint64
	Resolver Resolver
	Log      *slog.Logger

	// noOffload disables virtio-net headers and UDP segmentation, noSegment only the
	// latter. For tests.
	noOffload, noSegment bool
	// more are datapaths for tests, preferred to those of datapaths.
	more []offer
}

// Resolver finds the addresses of Pods.
type Resolver interface {
	// Lookup returns the current addresses of a Pod. No address and no error means
	// that none is known yet.
	Lookup(ctx context.Context, pod string) ([]netip.Addr, error)
}

// Wire is the desired state of one wire's end, or of a wire inside the Pod.
type Wire struct {
	ID      contract.WireID
	PeerPod string
	// Leg is this end's leg: the sidecar's side of the veth pair to the device. A new
	// LegIndex means that it was recreated. 0: look it up.
	Leg      string
	LegIndex int
	// LocalLeg, instead of PeerPod, is the leg of the other end in this Pod.
	LocalLeg   string
	LocalIndex int
	// MTU of the link, bytes of IP packet.
	MTU int
	// Datapath is auto, udp, vxlan or local; "" is auto.
	Datapath string
	// Plain is set if the device cannot handle super-frames and unfinished
	// checksums. The sidecar then segments and finishes them before delivery.
	Plain bool
	// Impairment of what this end sends (from Leg to LocalLeg), nil for none;
	// ReverseImpairment of what LocalLeg sends.
	Impairment        *contract.Impairment
	ReverseImpairment *contract.Impairment
}

// maxWireID is the greatest that fits a VXLAN's number (RFC 7348, 5).
const maxWireID = 1<<24 - 1

// check returns all errors of a desired state.
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
