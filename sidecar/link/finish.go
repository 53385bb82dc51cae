package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// finish applies what the request that created the interface could not, and later what
// changed in links.json. It leaves alone what the device changed itself. dev is nil if the
// device moved its end away; leg is nil if there is none.
func (r *round) finish(i *contract.Interface, dev, leg netlink.Link) error {
	stands := leg
	if stands == nil {
		stands = dev
	}
	if stands == nil {
		return nil
	}
	old, known := r.memory.get(KeyOf(i))
	fresh := !known || old.Index != stands.Attrs().Index
	if !fresh && reflect.DeepEqual(old.Spec, *i) {
		return nil
	}
	home := r.home(i)
	home.touched, r.own.touched = true, true
	if leg != nil {
		if err := r.own.setMTU(leg, i.MTU); err != nil {
			return err
		}
	}
	if dev != nil {
		if err := r.finishDevice(home, i, dev, fresh, &old.Spec); err != nil {
			return err
		}
	}
	r.memory.done(i, stands.Attrs().Index)
	return nil
}

func (r *round) finishDevice(home *place, i *contract.Interface, dev netlink.Link, fresh bool, old *contract.Interface) error {
	if err := home.mark(dev, i); err != nil {
		return err
	}
	if fresh || old.MTU != i.MTU {
		if err := home.setMTU(dev, i.MTU); err != nil {
			return err
		}
	}
	if fresh || old.MAC != i.MAC {
		if err := home.setMAC(dev, i.MAC); err != nil {
			return err
		}
	}
	if fresh {
		if err := home.txChecksumOff(dev); err != nil {
			return err
		}
	}
	if err := r.enslave(dev, i); err != nil {
		return err
	}
	if fresh {
		if err := home.up(dev); err != nil {
			return err
		}
		old = &contract.Interface{}
	}
	return home.addresses(dev, i, old)
}

func (p *place) setMTU(l netlink.Link, mtu int) error {
	if mtu == 0 || l.Attrs().MTU == mtu {
		return nil
	}
	if err := p.nl.LinkSetMTU(l, mtu); err != nil {
		return fmt.Errorf("MTU %d of %s: %w", mtu, l.Attrs().Name, err)
	}
	l.Attrs().MTU = mtu
	return nil
}

func (p *place) setMAC(l netlink.Link, text string) error {
	if text == "" || l.Attrs().HardwareAddr.String() == text {
		return nil
	}
	mac, err := net.ParseMAC(text)
	if err != nil {
		return fmt.Errorf("MAC address %q of %s: %w", text, l.Attrs().Name, err)
	}
	if slices.Equal(mac, l.Attrs().HardwareAddr) {
		return nil
	}
	if err := p.nl.LinkSetHardwareAddr(l, mac); err != nil {
		return fmt.Errorf("MAC address %s of %s: %w", text, l.Attrs().Name, err)
	}
	return nil
}

// mark sets what identifies the device's end: the alias as ifalias and altname, the long
// name as altname, and the owner's mark.
func (p *place) mark(l netlink.Link, i *contract.Interface) error {
	a := l.Attrs()
	if i.Alias != "" && a.Alias != i.Alias {
		if err := p.nl.LinkSetAlias(l, i.Alias); err != nil {
			return fmt.Errorf("ifalias of %s: %w", a.Name, err)
		}
	}
	alts := []string{ownerAlt(KeyOf(i))}
	if a.Name != i.Name && !Legal(i.Name) {
		alts = append(alts, AltName(i.Name))
	}
	if i.Alias != "" {
		alts = append(alts, AltName(i.Alias))
	}
	for _, alt := range alts {
		if alt == a.Name || slices.Contains(a.AltNames, alt) {
			continue
		}
		if err := p.nl.LinkAddAltName(l, alt); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("altname %s of %s: %w", alt, a.Name, err)
		}
		a.AltNames = append(a.AltNames, alt)
		p.byAlt[alt] = l
	}
	return nil
}

// addresses adds the addresses of the link, and removes those that an earlier
// links.json had.
func (p *place) addresses(l netlink.Link, i, old *contract.Interface) error {
	for _, pair := range [][2]netip.Prefix{{old.IPv4, i.IPv4}, {old.IPv6, i.IPv6}} {
		was, is := pair[0], pair[1]
		if was.IsValid() && was != is {
			if err := p.nl.AddrDel(l, Addr(was)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return fmt.Errorf("remove address %s of %s: %w", was, l.Attrs().Name, err)
			}
		}
		if is.IsValid() && was != is {
			if err := p.nl.AddrReplace(l, Addr(is)); err != nil {
				return fmt.Errorf("address %s of %s: %w", is, l.Attrs().Name, err)
			}
		}
	}
	return nil
}

// Addr is an address for netlink. Duplicate address detection is left out: the
// addresses are the lab's own, and an interface without carrier would keep them
// tentative.
func Addr(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: IPNet(p)}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

// IPNet is the prefix with all bits of its address.
func IPNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
