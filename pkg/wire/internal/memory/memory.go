//go:build linux

package memory

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/datapath"
)

// Hub joins the ends of wires.
type Hub struct {
	mu   sync.Mutex
	ends map[contract.WireID][]*datapath.End
	// Frames counts the frames that are delivered.
	Frames atomic.Uint64
}

// NewHub returns a hub without ends.
func NewHub() *Hub { return &Hub{ends: map[contract.WireID][]*datapath.End{}} }

// Datapath is the hub as a fabric sees it; all fabrics may share it.
type Datapath struct{ *Hub }

// Open does nothing: there is nothing to prepare.
func (Datapath) Open(*netlink.Handle) error { return nil }

// Wanted takes every wire without impairment.
func (Datapath) Wanted(c datapath.Conditions) string {
	if c.Impaired {
		return "impaired"
	}
	return ""
}

// Ensure adds the end to the hub.
func (d Datapath) Ensure(l datapath.Leg, _ netip.Addr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.ends[l.Wire], l.End) {
		d.ends[l.Wire] = append(d.ends[l.Wire], l.End)
	}
	return nil
}

// Send has nothing to switch: the fabric calls Frame or does not.
func (Datapath) Send(_ datapath.Leg, on bool) bool { return on }

// Remove takes the end out of the hub.
func (d Datapath) Remove(l datapath.Leg) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ends[l.Wire] = slices.DeleteFunc(d.ends[l.Wire], func(e *datapath.End) bool { return e == l.End })
}

// Finish has nothing left to do.
func (Datapath) Finish() error { return nil }

// Frame writes the frame to the leg of the far end.
func (d Datapath) Frame(from *datapath.End, vnet, frame []byte) {
	d.mu.Lock()
	ends := slices.Clone(d.ends[from.ID])
	d.mu.Unlock()
	for _, to := range ends {
		if to != from {
			d.deliver(to, vnet, frame)
		}
	}
}

func (d Datapath) deliver(to *datapath.End, vnet, frame []byte) {
	to.Legs.Lock()
	defer to.Legs.Unlock()
	out := to.Out.Load()
	if out == nil {
		return
	}
	if len(vnet) > 0 && vnet[0]|vnet[1] == 0 {
		vnet = nil
	}
	leg := datapath.NewDeliverer()
	leg.Parts(out, vnet, frame, nil)
	d.Frames.Add(1) // before the frame arrives, and is answered
	leg.Flush()
}
