package link

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// place is one of the Pod's two network namespaces as a round sees it.
type place struct {
	*Snapshot
	nl *netlink.Handle
	// do runs code in the namespace.
	do func(func() error) error
	// fd is the namespace's descriptor, and peer the id of the other namespace in
	// this one.
	fd, peer int
	// touched is set after a change, which makes the snapshot stale.
	touched bool
}

// home returns the namespace of a node's interface: the sidecar's for ports of a bridge,
// the device's for all others.
func (r *round) home(i *contract.Interface) *place {
	if i.Bridge != "" {
		return r.own
	}
	return r.dev
}

// device returns the device's end of a leg, or nil if the device moved it to another
// namespace.
func (r *round) device(leg netlink.Link) netlink.Link {
	if l := r.own.Peer(leg); l != nil {
		return l
	}
	return across(r.own, leg, r.dev)
}

// legOf returns the leg of a device's end, or nil.
func (r *round) legOf(dev netlink.Link) netlink.Link { return across(r.dev, dev, r.own) }

// across returns the other end of a veth that is in the other namespace.
func across(from *place, l netlink.Link, to *place) netlink.Link {
	a := l.Attrs()
	if l.Type() != "veth" || a.NetNsID < 0 || a.NetNsID != from.peer {
		return nil
	}
	peer := to.byIndex[a.ParentIndex]
	if peer == nil || peer.Attrs().ParentIndex != a.Index || peer.Attrs().NetNsID != to.peer {
		return nil
	}
	return peer
}

// delete deletes an interface and, for a veth, its other end.
func (r *round) delete(p *place, l netlink.Link) {
	p.touched = true
	if err := p.nl.LinkDel(l); err != nil && !gone(err) {
		r.fail(Key{Name: l.Attrs().Name}, fmt.Errorf("remove %s: %w", l.Attrs().Name, err))
		return
	}
	other := r.dev
	if p == r.dev {
		other = r.own
	}
	if peer := p.Peer(l); peer != nil {
		p.remove(peer)
	} else if peer := across(p, l, other); peer != nil {
		other.remove(peer)
	}
	p.remove(l)
}

// gone reports whether what was to be removed or read no longer exists.
func gone(err error) bool {
	var notFound netlink.LinkNotFoundError
	return errors.As(err, &notFound) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT)
}

// create creates an interface and adds it to the snapshot, with a veth's other end in the
// same namespace. An interface that appeared meanwhile is used as it is.
func (p *place) create(l netlink.Link) (netlink.Link, error) {
	if err := p.nl.LinkAdd(l); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return p.read(l.Attrs().Name)
}

// read adds an interface, and a veth's other end, to the snapshot.
func (p *place) read(name string) (netlink.Link, error) {
	p.touched = true
	got, err := p.nl.LinkByName(name)
	if err != nil {
		return nil, err
	}
	p.add(got)
	if a := got.Attrs(); got.Type() == "veth" && a.NetNsID < 0 && a.ParentIndex != 0 {
		peer, err := p.nl.LinkByIndex(a.ParentIndex)
		if err != nil {
			return nil, err
		}
		p.add(peer)
	}
	return got, nil
}

func (p *place) up(l netlink.Link) error {
	if l.Attrs().RawFlags&unix.IFF_UP != 0 {
		return nil
	}
	p.touched = true
	if err := p.nl.LinkSetUp(l); err != nil {
		return fmt.Errorf("set %s up: %w", l.Attrs().Name, err)
	}
	l.Attrs().RawFlags |= unix.IFF_UP
	return nil
}

// txChecksumOff is TxChecksumOff in the namespace.
func (p *place) txChecksumOff(l netlink.Link) error {
	return p.do(func() error { return TxChecksumOff(l.Attrs().Name) })
}

func (p *place) rename(l netlink.Link, name string) error {
	a := l.Attrs()
	if err := Rename(p.nl, l, name); err != nil {
		return err
	}
	p.touched = true
	delete(p.byName, a.Name)
	a.Name = name
	p.byName[name] = l
	return nil
}
