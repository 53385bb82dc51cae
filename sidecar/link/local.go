package link

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// peerOf returns the other end of a local link, or nil.
func peerOf(i *contract.Interface, want map[string]*contract.Interface) *contract.Interface {
	return want[Key{Node: i.Local.PeerNode, Name: i.Local.PeerInterface}.String()]
}

// Impaired reports whether a local link needs the fabric because at least one direction is
// impaired.
func Impaired(i *contract.Interface, want map[string]*contract.Interface) bool {
	if i.Local.Impairment != nil {
		return true
	}
	peer := peerOf(i, want)
	return peer != nil && peer.Local != nil && peer.Local.Impairment != nil
}

// First reports whether i is the first end by name. The order in the file may change.
func First(i *contract.Interface) bool {
	if i.Node != i.Local.PeerNode {
		return i.Node < i.Local.PeerNode
	}
	return i.Name < i.Local.PeerInterface
}

func localSuffix(i *contract.Interface) string {
	if First(i) {
		return "a"
	}
	return "b"
}

// ensureLocal ensures a veth with both ends in this Pod.
func (r *round) ensureLocal(i *contract.Interface) error {
	peer := peerOf(i, r.want)
	if peer == nil || peer.Local == nil {
		return fmt.Errorf("interface %s of node %s: its other end, %s of node %s, is not in links.json",
			i.Name, i.Node, i.Local.PeerInterface, i.Local.PeerNode)
	}
	dev, other := r.localEnd(i), r.localEnd(peer)
	switch {
	case dev != nil && other != nil && r.dev.Peer(dev) == other:
		return r.finish(i, dev, nil)
	case dev != nil && other == nil && dev.Attrs().NetNsID >= 0:
		return r.finish(i, dev, nil)
	case dev == nil && other != nil && other.Attrs().NetNsID >= 0:
		return nil
	case dev == nil && other == nil && r.elsewhere(KeyOf(i)):
		return nil
	}
	return r.makeLocal(i, peer)
}

// localEnd finds one end of a local link: a veth without a leg.
func (r *round) localEnd(i *contract.Interface) netlink.Link {
	l := r.dev.device(KeyOf(i), LinuxName(i.Node, i.Name))
	if l == nil || l.Type() != "veth" || r.legOf(l) != nil {
		return nil
	}
	return l
}

func (r *round) makeLocal(i, peer *contract.Interface) error {
	name, peerName := LinuxName(i.Node, i.Name), LinuxName(peer.Node, peer.Name)
	if name == peerName {
		return fmt.Errorf("interfaces %s of node %s and %s of node %s would both be %s in one Pod", i.Name, i.Node, peer.Name, peer.Node, name)
	}
	if err := r.clear(r.dev, KeyOf(i), name); err != nil {
		return err
	}
	if err := r.clear(r.dev, KeyOf(peer), peerName); err != nil {
		return err
	}
	// The peer of a request is made first, and the order of the file is that of
	// the interfaces' numbers.
	near, err := vethOf(i, name, peerName)
	if err != nil {
		return err
	}
	veth, err := vethOf(peer, peerName, name)
	if err != nil {
		return err
	}
	veth.PeerHardwareAddr, veth.PeerMTU = near.HardwareAddr, uint32(near.MTU)
	if _, err := r.dev.create(veth); err != nil {
		return fmt.Errorf("make %s with %s: %w", name, peerName, err)
	}
	dev := r.dev.byName[name]
	if dev == nil {
		return fmt.Errorf("make %s with %s: %s exists, and leads elsewhere", name, peerName, peerName)
	}
	return r.finish(i, dev, nil)
}
