package mgmt

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/link"
)

// portName is the other end of eth0 where the leg is a bridge.
const portName = "c9srp"

// legAlias marks the veth end that belongs to eth0, and says which addresses eth0
// was given, so that a later links.json takes these away and no others.
func (m *Router) legAlias() string {
	return fmt.Sprintf("%s%s %s", legMark, m.mgmt.IPv4, m.mgmt.IPv6)
}

const legMark = "c9s-mgmt "

// ensureLeg has eth0 and the leg. As with every leg, its being there says that
// the device has eth0, wherever that is and whatever it is called.
func (m *Router) ensureLeg(snap *link.Snapshot) (leg netlink.Link, err error) {
	end := LegName
	if len(m.bridged) > 0 {
		end = portName
	}
	veth, err := m.vethEnd(snap, end)
	if err != nil {
		return nil, err
	}
	leg = veth
	if end == portName {
		if leg, err = m.ensureBridge(snap, veth); err != nil {
			return nil, err
		}
	} else if veth.Attrs().MasterIndex != 0 {
		if err := m.nl.LinkSetNoMaster(veth); err != nil {
			return nil, fmt.Errorf("%s out of its bridge: %w", veth.Attrs().Name, err)
		}
	}
	for _, l := range []netlink.Link{veth, leg} {
		if l.Attrs().RawFlags&unix.IFF_UP == 0 {
			if err := m.nl.LinkSetUp(l); err != nil {
				return nil, fmt.Errorf("set %s up: %w", l.Attrs().Name, err)
			}
		}
	}
	return leg, nil
}

// eth0 is the other end of the leg, nil where the device moved it to a namespace of
// its own.
func (m *Router) eth0(veth netlink.Link) (netlink.Link, error) {
	id, err := link.PeerID(m.nl, m.device.FD())
	if err != nil {
		return nil, err
	}
	if veth.Attrs().NetNsID != id {
		return nil, nil
	}
	dev, err := m.nlDevice.LinkByIndex(veth.Attrs().ParentIndex)
	if err != nil {
		return nil, fmt.Errorf("the other end of %s: %w", veth.Attrs().Name, err)
	}
	return dev, nil
}

// vethEnd has the veth pair, with our end called end.
func (m *Router) vethEnd(snap *link.Snapshot, end string) (netlink.Link, error) {
	var veth netlink.Link
	for _, name := range []string{LegName, portName} {
		if l := snap.ByName(name); l != nil && l.Type() == "veth" {
			veth = l
		}
	}
	if veth == nil {
		return m.makeEth0(end)
	}
	if name := veth.Attrs().Name; name != end {
		if end == LegName {
			if br := snap.ByName(LegName); br != nil {
				if err := m.nl.LinkDel(br); err != nil {
					return nil, fmt.Errorf("remove bridge %s: %w", LegName, err)
				}
			}
		} else if err := m.flushLeg(veth); err != nil {
			return nil, err
		}
		if err := link.Rename(m.nl, veth, end); err != nil {
			return nil, err
		}
		veth.Attrs().Name = end
	}
	// Unmarked, its making was interrupted; marked otherwise, its addresses are
	// old. In a namespace of the device's own they are the device's.
	alias := veth.Attrs().Alias
	if alias == m.legAlias() {
		return veth, nil
	}
	dev, err := m.eth0(veth)
	if err != nil || dev == nil {
		return veth, err
	}
	if err := m.dropOld(dev, alias); err != nil {
		return nil, err
	}
	return veth, m.finishEth0(veth, dev)
}

func (m *Router) dropOld(dev netlink.Link, alias string) error {
	for _, text := range strings.Fields(strings.TrimPrefix(alias, legMark)) {
		p, err := netip.ParsePrefix(text)
		if err != nil || p == m.mgmt.IPv4 || p == m.mgmt.IPv6 {
			continue
		}
		if err := m.nlDevice.AddrDel(dev, link.Addr(p)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("remove address %s of %s: %w", p, dev.Attrs().Name, err)
		}
	}
	return nil
}

// flushLeg takes the addresses off a leg that becomes a port.
func (m *Router) flushLeg(l netlink.Link) error {
	addrs, err := m.nl.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("addresses of %s: %w", l.Attrs().Name, err)
	}
	for _, a := range addrs {
		if err := m.nl.AddrDel(l, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("remove address %s of %s: %w", a.IP, l.Attrs().Name, err)
		}
	}
	return nil
}

func (m *Router) makeEth0(end string) (netlink.Link, error) {
	if old, err := m.nlDevice.LinkByName(m.mgmt.Interface); err == nil {
		return nil, fmt.Errorf("there is an interface %s already, a %s that is not the lab's", m.mgmt.Interface, old.Type())
	}
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = m.mgmt.Interface, m.mgmt.MTU
	mac, err := net.ParseMAC(m.mgmt.MAC)
	if err != nil {
		return nil, fmt.Errorf("MAC address %q of %s in links.json: %w", m.mgmt.MAC, m.mgmt.Interface, err)
	}
	a.HardwareAddr = mac
	if err := m.nlDevice.LinkAdd(&netlink.Veth{LinkAttrs: a, PeerName: end, PeerMTU: uint32(m.mgmt.MTU), PeerNamespace: netlink.NsFd(m.own)}); err != nil {
		return nil, fmt.Errorf("make %s: %w", m.mgmt.Interface, err)
	}
	leg, err := m.nl.LinkByName(end)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", m.mgmt.Interface, err)
	}
	dev, err := m.nlDevice.LinkByName(m.mgmt.Interface)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", m.mgmt.Interface, err)
	}
	return leg, m.finishEth0(leg, dev)
}

// finishEth0 gives eth0 its addresses and the default routes that a container has
// in containerlab, once: later they are the device's.
func (m *Router) finishEth0(leg, dev netlink.Link) error {
	name := dev.Attrs().Name
	err := errors.Join(link.TxChecksumOff(leg.Attrs().Name), m.device.Do(func() error {
		if err := link.TxChecksumOff(name); err != nil || !m.mgmt.IPv6.IsValid() {
			return err
		}
		return link.SetSysctl("0", "net", "ipv6", "conf", name, "disable_ipv6")
	}))
	if m.mgmt.IPv6.IsValid() {
		// The router speaks at once: nobody else has its link-local address.
		err = errors.Join(err, link.SetSysctl("0", "net", "ipv6", "conf", leg.Attrs().Name, "accept_dad"))
	}
	if err != nil {
		return err
	}
	if err := m.nl.LinkSetUp(leg); err != nil {
		return fmt.Errorf("set %s up: %w", leg.Attrs().Name, err)
	}
	if err := m.nlDevice.LinkSetUp(dev); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	for _, p := range []netip.Prefix{m.mgmt.IPv4, m.mgmt.IPv6} {
		if !p.IsValid() {
			continue
		}
		if err := m.nlDevice.AddrReplace(dev, link.Addr(p)); err != nil {
			return fmt.Errorf("address %s of %s: %w", p, name, err)
		}
	}
	for _, n := range m.networks() {
		def := &netlink.Route{LinkIndex: dev.Attrs().Index, Table: unix.RT_TABLE_MAIN, Dst: defaultOf(n.gateway), Gw: n.gateway.AsSlice()}
		if err := addRoute(m.nlDevice, def); err != nil {
			return err
		}
	}
	if err := m.nl.LinkSetAlias(leg, m.legAlias()); err != nil {
		return fmt.Errorf("mark %s: %w", leg.Attrs().Name, err)
	}
	return nil
}

func defaultOf(a netip.Addr) *net.IPNet {
	if a.Is4() {
		return link.IPNet(netip.PrefixFrom(netip.IPv4Unspecified(), 0))
	}
	return link.IPNet(netip.PrefixFrom(netip.IPv6Unspecified(), 0))
}

// ensureBridge makes the leg a bridge whose ports are eth0's other end and the
// legs of the interfaces that links of type mgmt-net put on the management
// network.
func (m *Router) ensureBridge(snap *link.Snapshot, veth netlink.Link) (netlink.Link, error) {
	br, err := m.nl.LinkByName(LegName)
	if err != nil {
		a := netlink.NewLinkAttrs()
		a.Name, a.MTU = LegName, m.mgmt.MTU
		// A MAC of its own: otherwise a bridge takes that of a port, and changes it.
		a.HardwareAddr = MAC("leg " + m.mgmt.MAC)
		off := false
		if err := m.nl.LinkAdd(&netlink.Bridge{LinkAttrs: a, MulticastSnooping: &off}); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("make bridge %s: %w", LegName, err)
		}
		if br, err = m.nl.LinkByName(LegName); err != nil {
			return nil, fmt.Errorf("make bridge %s: %w", LegName, err)
		}
	}
	for _, name := range slices.Concat([]string{portName}, m.bridged) {
		port := snap.ByName(name)
		if name == portName {
			port = veth
		}
		if port == nil || port.Attrs().MasterIndex == br.Attrs().Index {
			continue
		}
		if err := m.nl.LinkSetMaster(port, br); err != nil {
			return nil, fmt.Errorf("port %s of bridge %s: %w", name, LegName, err)
		}
	}
	return br, errors.Join(link.Quiet(portName), link.PassBridged())
}
