package link

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// legMode is what brings a leg up: the fabric by the state of the wire, or the sidecar at
// once.
type legMode bool

const (
	legDown legMode = false
	legUp   legMode = true
)

// ensureLegged keeps a veth whose one end is the device's and whose other is a
// leg of ours. The leg tells what became of the device's end: renamed or moved,
// and it is the device's business; deleted, and the leg is gone too.
func (r *round) ensureLegged(i *contract.Interface, leg string, mode legMode) error {
	k := KeyOf(i)
	l := r.own.legs[k.String()]
	if l == nil {
		l = r.unmarkedLeg(leg)
	}
	if l != nil && l.Type() != "veth" {
		r.delete(r.own, l)
		l = nil
	}
	if l == nil {
		made, err := r.makeLegged(i, leg)
		if err != nil {
			return err
		}
		l = made
	}
	if err := r.nameLeg(l, k, leg); err != nil {
		return err
	}
	if err := r.finish(i, r.device(l), l); err != nil {
		return err
	}
	if mode == legUp {
		return r.own.up(l)
	}
	return nil
}

// unmarkedLeg finds a leg that a kill kept from being marked.
func (r *round) unmarkedLeg(name string) netlink.Link {
	if l := r.own.byName[name]; l != nil && l.Attrs().Alias == "" {
		return l
	}
	return nil
}

func (r *round) makeLegged(i *contract.Interface, leg string) (netlink.Link, error) {
	k, name, home := KeyOf(i), LinuxName(i.Node, i.Name), r.home(i)
	if err := r.clear(home, k, name); err != nil {
		return nil, err
	}
	if old := r.own.byName[leg]; old != nil {
		if err := r.setAside(old); err != nil {
			return nil, err
		}
	}
	veth, err := vethOf(i, name, leg)
	if err != nil {
		return nil, err
	}
	if home != r.own {
		veth.PeerNamespace = netlink.NsFd(r.own.fd)
	}
	dev, err := home.create(veth)
	if err != nil {
		return nil, fmt.Errorf("make %s with leg %s: %w", name, leg, err)
	}
	l, err := r.own.read(leg)
	if err != nil || r.device(l) != dev && home != r.own {
		return nil, fmt.Errorf("make %s: %s exists, and its other end is not %s", name, name, leg)
	}
	return l, nil
}

// vethOf is the pair of i: all that one request can set, so that a kill leaves
// little undone.
func vethOf(i *contract.Interface, name, peer string) (*netlink.Veth, error) {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = name, i.MTU
	if i.MAC != "" {
		mac, err := net.ParseMAC(i.MAC)
		if err != nil {
			return nil, fmt.Errorf("interface %s: MAC address %q in links.json: %w", i.Name, i.MAC, err)
		}
		a.HardwareAddr = mac
	}
	return &netlink.Veth{LinkAttrs: a, PeerName: peer, PeerMTU: uint32(i.MTU)}, nil
}

// clear makes room for an interface of that name: what was ours is removed, what
// is not stays and is an error.
func (r *round) clear(p *place, k Key, name string) error {
	if old := p.byAlt[ownerAlt(k)]; old != nil {
		r.delete(p, old)
	}
	old := p.byName[name]
	if old == nil {
		return nil
	}
	if ours(old) {
		r.delete(p, old)
		return nil
	}
	return fmt.Errorf("there is an interface %s already, a %s that is not the lab's", name, old.Type())
}

// ours reports whether an interface has a mark of the sidecar.
func ours(l netlink.Link) bool {
	for _, alt := range l.Attrs().AltNames {
		if len(alt) > len(ownerAltPrefix) && alt[:len(ownerAltPrefix)] == ownerAltPrefix {
			return true
		}
	}
	return false
}

// nameLeg marks the leg and gives it its name: a link that got another number is
// a leg with another name, and the device's end stays what it is.
func (r *round) nameLeg(l netlink.Link, k Key, name string) error {
	a := l.Attrs()
	if a.Name != name {
		if old := r.own.byName[name]; old != nil {
			if err := r.setAside(old); err != nil {
				return err
			}
		}
		if err := r.own.rename(l, name); err != nil {
			return err
		}
	}
	if a.Alias == k.String() {
		return nil
	}
	// The mark comes last: what is marked is quiet.
	if err := Quiet(name); err != nil {
		return err
	}
	if err := r.own.nl.LinkSetAlias(l, k.String()); err != nil {
		return fmt.Errorf("mark leg %s: %w", name, err)
	}
	a.Alias = k.String()
	r.own.legs[a.Alias] = l
	r.own.touched = true
	return nil
}

// setAside renames a leg that is in the way of another, until its own turn.
func (r *round) setAside(l netlink.Link) error {
	if l.Attrs().Alias == "" {
		r.delete(r.own, l)
		return nil
	}
	return r.own.rename(l, fmt.Sprintf("%st%d", Prefix, l.Attrs().Index))
}

// Rename gives an interface another name. Kernels before 6.2 refuse that for one
// that is up, so it is down for a moment there.
func Rename(nl *netlink.Handle, l netlink.Link, name string) error {
	err := nl.LinkSetName(l, name)
	if errors.Is(err, unix.EBUSY) {
		if err = nl.LinkSetDown(l); err == nil {
			err = errors.Join(nl.LinkSetName(l, name), nl.LinkSetUp(l))
		}
	}
	if err != nil {
		return fmt.Errorf("rename %s to %s: %w", l.Attrs().Name, name, err)
	}
	return nil
}
