package podnet

import (
	"context"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/link"
	"github.com/c9s-lab/c9s/sidecar/mgmt"
)

// Fabric is the fabric wire, as far as it is used here.
type Fabric interface {
	Run(context.Context) error
	Set([]wire.Wire) error
	PeersChanged()
	mgmt.Sessions
	Leave()
	Status() wire.Status
	Changes() <-chan struct{}
	Close() error
}

// FabricMaker makes a Fabric.
type FabricMaker func(wire.Options) (Fabric, error)

func newFabric(o wire.Options) (Fabric, error) { return wire.New(o) }

// wires returns the wires for the fabric: one for each existing leg of an interface that leads
// to another Pod, or within the Pod with an impairment.
func wires(ifaces []contract.Interface, states []link.State) []wire.Wire {
	legs := make(map[link.Key]link.State, len(states))
	want := make(map[string]*contract.Interface, len(ifaces))
	for _, s := range states {
		legs[s.Key] = s
	}
	for i := range ifaces {
		want[link.KeyOf(&ifaces[i]).String()] = &ifaces[i]
	}
	var all []wire.Wire
	for i := range ifaces {
		f := &ifaces[i]
		leg := legs[link.KeyOf(f)]
		if leg.Leg == "" {
			continue
		}
		// Not Plain: every device's end is made with checksum offload off, so a
		// frame is unfinished only where a device wants it so, and Plain would
		// leave no wire to the vxlan datapath.
		w := wire.Wire{Leg: leg.Leg, LegIndex: leg.LegIndex, MTU: f.MTU}
		switch {
		case f.Wire != nil:
			w.ID, w.PeerPod, w.Datapath, w.Impairment = f.Wire.ID, f.Wire.PeerPod, f.Wire.Datapath, f.Wire.Impairment
		case f.Local != nil && link.Impaired(f, want) && link.First(f):
			peer := want[link.Key{Node: f.Local.PeerNode, Name: f.Local.PeerInterface}.String()]
			if peer == nil || peer.Local == nil {
				continue // a list that is half edited
			}
			other := legs[link.KeyOf(peer)]
			if other.Leg == "" {
				continue
			}
			w.ID, w.LocalLeg, w.LocalIndex = f.Local.ID, other.Leg, other.LegIndex
			w.Impairment, w.ReverseImpairment = f.Local.Impairment, peer.Local.Impairment
		default:
			continue
		}
		all = append(all, w)
	}
	return all
}
