// Package mgmt manages the sidecar's side of the Pod's network and the lab's management
// network: the cluster interface, the synthetic eth0 with its router,
// and the management mesh between Pods.
package mgmt

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/link"
)

// The interfaces that the sidecar creates for itself.
const (
	// UnderlayName is the new name of the interface that the CNI plugin created.
	UnderlayName = "c9s0"
	// LegName is the router's end of eth0.
	LegName = "c9sr0"
	// MeshName is the management VXLAN.
	MeshName = "c9sm"
)

// Underlay is the Pod's cluster interface, which moves from the device's namespace
// to the sidecar's.
type Underlay struct {
	nl, device *netlink.Handle
	// own is the descriptor of the sidecar's namespace.
	own int
	// file stores what the CNI plugin set up, since a moved interface loses it and the
	// sidecar may be killed in between. It lives as long as the Pod.
	file  string
	pod   []netip.Addr
	saved *saved
}

// saved is what the CNI plugin set up.
type saved struct {
	Addrs  []netip.Prefix `json:"addrs"`
	Routes []route        `json:"routes"`
	// Neighbours are the permanent ones, which plugins set if their gateway does not
	// answer ARP.
	Neighbours []neighbour `json:"neighbours,omitempty"`
}

// neighbour is a permanent neighbour entry.
type neighbour struct {
	Addr netip.Addr `json:"addr"`
	MAC  string     `json:"mac"`
}

// route is a route through the cluster interface. The zero Dst of its family is
// the default route.
type route struct {
	Dst   netip.Prefix `json:"dst"`
	Via   netip.Addr   `json:"via,omitzero"`
	Src   netip.Addr   `json:"src,omitzero"`
	Scope uint8        `json:"scope,omitempty"`
	MTU   int          `json:"mtu,omitempty"`
	// Metric distinguishes routes to the same destination.
	Metric int `json:"metric,omitempty"`
	// OnLink and Kind (RTN_*) are the route's own; 0 is unicast.
	OnLink bool `json:"onLink,omitempty"`
	Kind   int  `json:"kind,omitempty"`
}

// NewUnderlay returns the Underlay of a Pod with these addresses. nl and own are of the
// sidecar's namespace, device is of the device's. file must live as long as the Pod.
func NewUnderlay(nl, device *netlink.Handle, own int, file string, pod []netip.Addr) *Underlay {
	return &Underlay{nl: nl, device: device, own: own, file: file, pod: pod}
}

// Ensure moves the interface to the sidecar's namespace as c9s0 and restores what the CNI
// plugin configured. The MTU of the result is that of the default route if that is smaller,
// as in clusters that encrypt.
func (u *Underlay) Ensure() (netlink.Link, error) {
	l, err := u.moved()
	if err != nil {
		return nil, err
	}
	if l.Attrs().RawFlags&unix.IFF_UP == 0 {
		if err := u.nl.LinkSetUp(l); err != nil {
			return nil, fmt.Errorf("set %s up: %w", UnderlayName, err)
		}
	}
	if err := u.addresses(l); err != nil {
		return nil, err
	}
	for _, r := range u.saved.Routes {
		if r.Dst.Bits() == 0 && r.MTU > 0 {
			l.Attrs().MTU = min(l.Attrs().MTU, r.MTU)
		}
	}
	return l, errors.Join(u.neighbours(l), u.routes(l))
}

// moved returns c9s0. It moves the interface first if necessary.
func (u *Underlay) moved() (netlink.Link, error) {
	l, err := u.nl.LinkByName(UnderlayName)
	if err == nil {
		if u.saved == nil {
			u.saved = u.load()
		}
		if u.saved == nil {
			return nil, fmt.Errorf("what the CNI plugin set up is not in %s", u.file)
		}
		return l, nil
	}
	if l, err = InPod(u.device, u.pod); err != nil {
		return nil, err
	}
	if l == nil {
		return nil, fmt.Errorf("no interface has a Pod address (%v)", u.pod)
	}
	if err := u.remember(l); err != nil {
		return nil, err
	}
	if err := u.move(l); err != nil {
		return nil, fmt.Errorf("move %s to the sidecar's namespace: %w", l.Attrs().Name, err)
	}
	return u.nl.LinkByName(UnderlayName)
}

// move sets the interface's new namespace and name in one step.
func (u *Underlay) move(l netlink.Link) error {
	return u.device.LinkModify(&netlink.GenericLink{
		LinkAttrs: netlink.LinkAttrs{Index: l.Attrs().Index, Name: UnderlayName, Namespace: netlink.NsFd(u.own), TxQLen: -1},
		LinkType:  l.Type(),
	})
}

// InPod returns the interface of the handle's namespace that has one of the Pod's
// addresses, nil for none.
func InPod(nl *netlink.Handle, pod []netip.Addr) (netlink.Link, error) {
	list, err := nl.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range list {
		addrs, err := nl.AddrList(l, netlink.FAMILY_ALL)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			continue
		}
		for _, a := range addrs {
			if ip, ok := netip.AddrFromSlice(a.IP); ok && slices.Contains(pod, ip.Unmap()) {
				return l, nil
			}
		}
	}
	return nil, nil
}

func (u *Underlay) load() *saved {
	data, err := os.ReadFile(u.file)
	if err != nil {
		return nil
	}
	var s saved
	if json.Unmarshal(data, &s) != nil || len(s.Addrs) == 0 {
		return nil
	}
	return &s
}

// remember stores what the CNI plugin configured.
func (u *Underlay) remember(l netlink.Link) error {
	s := &saved{}
	addrs, err := u.device.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("addresses of %s: %w", l.Attrs().Name, err)
	}
	for _, a := range addrs {
		if a.IP.IsLinkLocalUnicast() && a.IP.To4() == nil {
			continue
		}
		s.Addrs = append(s.Addrs, prefix(a.IPNet))
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := u.device.RouteListFiltered(family, &netlink.Route{LinkIndex: l.Attrs().Index, Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("routes of %s: %w", l.Attrs().Name, err)
		}
		for _, r := range routes {
			if saved, ok := savedRoute(r, family); ok {
				s.Routes = append(s.Routes, saved)
			}
		}
	}
	if s.Neighbours, err = u.permanent(l); err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	u.saved = s
	return link.WriteFile(u.file, data)
}

// savedRoute omits what every interface has: link-local and multicast.
func savedRoute(r netlink.Route, family int) (route, bool) {
	s := route{Scope: uint8(r.Scope), MTU: r.MTU, Metric: r.Priority, OnLink: r.Flags&int(netlink.FLAG_ONLINK) != 0}
	if r.Type != unix.RTN_UNICAST {
		s.Kind = r.Type
	}
	s.Dst = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if family == netlink.FAMILY_V6 {
		s.Dst = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	if r.Dst != nil {
		s.Dst = prefix(r.Dst)
	}
	if a := s.Dst.Addr(); a.Is6() && (a.IsLinkLocalUnicast() || a.IsMulticast()) {
		return route{}, false
	}
	s.Via, s.Src = addr(r.Gw), addr(r.Src)
	return s, true
}

// addresses restores what the move removed.
func (u *Underlay) addresses(l netlink.Link) error {
	have, err := u.nl.AddrList(l, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("addresses of %s: %w", UnderlayName, err)
	}
	for _, want := range u.saved.Addrs {
		if slices.ContainsFunc(have, func(a netlink.Addr) bool { return prefix(a.IPNet) == want }) {
			continue
		}
		a := link.Addr(want)
		// The kernel makes no route to the prefix: the plugin's routes have one, or, as
		// the ptp plugin's, one by a gateway instead.
		a.Flags |= unix.IFA_F_NOPREFIXROUTE
		if err := u.nl.AddrReplace(l, a); err != nil {
			return fmt.Errorf("address %s of %s: %w", want, UnderlayName, err)
		}
	}
	return nil
}

// permanent returns the neighbours that the CNI plugin configured.
func (u *Underlay) permanent(l netlink.Link) ([]neighbour, error) {
	var out []neighbour
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := u.device.NeighList(l.Attrs().Index, family)
		if err != nil {
			return nil, fmt.Errorf("neighbours on %s: %w", l.Attrs().Name, err)
		}
		for _, n := range list {
			if n.State&netlink.NUD_PERMANENT != 0 && len(n.HardwareAddr) > 0 {
				out = append(out, neighbour{addr(n.IP), n.HardwareAddr.String()})
			}
		}
	}
	return out, nil
}

// neighbours restores what the move removed.
func (u *Underlay) neighbours(l netlink.Link) error {
	for _, want := range u.saved.Neighbours {
		mac, err := net.ParseMAC(want.MAC)
		if err != nil {
			continue // not ours
		}
		n := &netlink.Neigh{LinkIndex: l.Attrs().Index, Family: familyOf(want.Addr), State: netlink.NUD_PERMANENT, IP: want.Addr.AsSlice(), HardwareAddr: mac}
		if err := u.nl.NeighSet(n); err != nil {
			return fmt.Errorf("neighbour %s of %s: %w", want.Addr, UnderlayName, err)
		}
	}
	return nil
}

// routes restores what the move removed. A route that already exists is not an error.
func (u *Underlay) routes(l netlink.Link) error {
	// Routes by gateways come after the routes to the gateways.
	for _, gateways := range []bool{false, true} {
		for _, r := range u.saved.Routes {
			if r.Via.IsValid() != gateways {
				continue
			}
			if err := addRoute(u.nl, r.netlink(l.Attrs().Index)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r route) netlink(index int) *netlink.Route {
	n := &netlink.Route{LinkIndex: index, Table: unix.RT_TABLE_MAIN, Type: r.Kind, Scope: netlink.Scope(r.Scope), MTU: r.MTU, Priority: r.Metric, Protocol: unix.RTPROT_STATIC}
	n.Dst = link.IPNet(r.Dst)
	if r.Via.IsValid() {
		n.Gw = r.Via.AsSlice()
	}
	if r.Src.IsValid() {
		n.Src = r.Src.AsSlice()
	}
	if r.OnLink {
		n.SetFlag(netlink.FLAG_ONLINK)
	}
	return n
}

// addRoute adds a route unless it exists. A gateway without a route in the table is on the
// link, as with CNI plugins that use link-scope routes.
func addRoute(nl *netlink.Handle, r *netlink.Route) error {
	err := nl.RouteAdd(r)
	if r.Gw != nil && (errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.EINVAL)) {
		r.SetFlag(netlink.FLAG_ONLINK)
		err = nl.RouteAdd(r)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("route to %s in table %d: %w", r.Dst, r.Table, err)
	}
	return nil
}

func prefix(n *net.IPNet) netip.Prefix {
	a, _ := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(a.Unmap(), ones)
}

func addr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
