// Package mgmt makes the Pod's own network and the lab's management network: the
// cluster interface with its policy routing, the synthetic eth0 with its router,
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

// The interfaces that the sidecar makes for itself.
const (
	// UnderlayName is what the interface that the CNI plugin made becomes.
	UnderlayName = "c9s0"
	// LegName is the router's end of eth0.
	LegName = "c9sr0"
	// MeshName is the management VXLAN.
	MeshName = "c9sm"
)

// Underlay is the Pod's cluster interface.
type Underlay struct {
	nl *netlink.Handle
	// file keeps what the CNI plugin set up, so that a kill in the middle of a
	// rename loses nothing. It lives as long as the Pod.
	file  string
	pod   []netip.Addr
	saved *saved
}

// saved is what the CNI plugin set up.
type saved struct {
	MAC    string         `json:"mac"`
	Addrs  []netip.Prefix `json:"addrs"`
	Routes []route        `json:"routes"`
	// Neighbours are the permanent ones: a plugin whose gateway answers no ARP sets
	// it so.
	Neighbours []neighbour `json:"neighbours,omitempty"`
}

// neighbour is who has an address, without being asked.
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
	// OnLink and Kind (RTN_*) are the route's own; 0 is unicast.
	OnLink bool `json:"onLink,omitempty"`
	Kind   int  `json:"kind,omitempty"`
}

// NewUnderlay is for the Pod with these addresses. file is in a folder that lives
// as long as the Pod.
func NewUnderlay(nl *netlink.Handle, file string, pod []netip.Addr) *Underlay {
	return &Underlay{nl: nl, file: file, pod: pod}
}

// Ensure has the interface as c9s0, up, with its addresses and with its routes in
// TableUnderlay alone. The MTU of what it returns is that of the default route where
// that is less, as where the cluster encrypts.
func (u *Underlay) Ensure() (netlink.Link, error) {
	l, err := u.find()
	if err != nil {
		return nil, err
	}
	if err := u.remember(l); err != nil {
		return nil, err
	}
	if l.Attrs().Name != UnderlayName {
		if err := link.Rename(u.nl, l, UnderlayName); err != nil {
			return nil, err
		}
		l.Attrs().Name = UnderlayName
		l.Attrs().RawFlags &^= unix.IFF_UP
	}
	if l.Attrs().RawFlags&unix.IFF_UP == 0 {
		if err := u.nl.LinkSetUp(l); err != nil {
			return nil, fmt.Errorf("set %s up: %w", UnderlayName, err)
		}
	}
	if err := u.addresses(l); err != nil {
		return nil, err
	}
	err = errors.Join(
		// The cluster is answered for the Pod address alone, and asked from it
		// alone: the device's addresses are none of its business.
		link.SetSysctl("1", "net", "ipv4", "conf", UnderlayName, "arp_ignore"),
		link.SetSysctl("2", "net", "ipv4", "conf", UnderlayName, "arp_announce"))
	for _, r := range u.saved.Routes {
		if r.Dst.Bits() == 0 && r.MTU > 0 {
			l.Attrs().MTU = min(l.Attrs().MTU, r.MTU)
		}
	}
	return l, errors.Join(err, u.neighbours(l), u.routes(l))
}

// find is the interface with the Pod's address. After a kill between "down" and
// "up" an IPv6 address may be missing, hence the MAC that was written down.
func (u *Underlay) find() (netlink.Link, error) {
	if l, err := u.nl.LinkByName(UnderlayName); err == nil {
		return l, nil
	}
	list, err := u.nl.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range list {
		addrs, err := u.nl.AddrList(l, netlink.FAMILY_ALL)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			continue
		}
		for _, a := range addrs {
			if ip, ok := netip.AddrFromSlice(a.IP); ok && slices.Contains(u.pod, ip.Unmap()) {
				return l, nil
			}
		}
	}
	if old := u.load(); old != nil {
		for _, l := range list {
			if l.Attrs().HardwareAddr.String() == old.MAC && old.MAC != "" {
				return l, nil
			}
		}
	}
	return nil, fmt.Errorf("no interface has a Pod address (%v)", u.pod)
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

// remember writes down what the CNI plugin set up, the first time.
func (u *Underlay) remember(l netlink.Link) error {
	if u.saved != nil {
		return nil
	}
	if u.saved = u.load(); u.saved != nil {
		return nil
	}
	s := &saved{MAC: l.Attrs().HardwareAddr.String()}
	addrs, err := u.nl.AddrList(l, netlink.FAMILY_ALL)
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
		routes, err := u.nl.RouteListFiltered(family, &netlink.Route{LinkIndex: l.Attrs().Index, Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
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

// savedRoute leaves out what belongs to every interface: link-local and multicast.
func savedRoute(r netlink.Route, family int) (route, bool) {
	s := route{Scope: uint8(r.Scope), MTU: r.MTU, OnLink: r.Flags&int(netlink.FLAG_ONLINK) != 0}
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

// addresses puts back what "down" took away: the kernel keeps IPv4 addresses, not
// IPv6 ones.
func (u *Underlay) addresses(l netlink.Link) error {
	have, err := u.nl.AddrList(l, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("addresses of %s: %w", UnderlayName, err)
	}
	for _, want := range u.saved.Addrs {
		if slices.ContainsFunc(have, func(a netlink.Addr) bool { return prefix(a.IPNet) == want }) {
			continue
		}
		if err := u.nl.AddrReplace(l, link.Addr(want)); err != nil {
			return fmt.Errorf("address %s of %s: %w", want, UnderlayName, err)
		}
	}
	return nil
}

// permanent are the neighbours that the CNI plugin set.
func (u *Underlay) permanent(l netlink.Link) ([]neighbour, error) {
	var out []neighbour
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := u.nl.NeighList(l.Attrs().Index, family)
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

// neighbours puts back what "down" took away.
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

// routes has the CNI plugin's routes in TableUnderlay, and not in the device's
// main table. They are added blindly: where they are there already nobody is
// told, and the device's tables, however large, are not read.
func (u *Underlay) routes(l netlink.Link) error {
	index := l.Attrs().Index
	for _, a := range u.pod {
		// So that what is routed by this table alone still reaches the Pod itself.
		self := route{Dst: netip.PrefixFrom(a, a.BitLen()), Scope: unix.RT_SCOPE_HOST, Kind: unix.RTN_LOCAL}
		if err := addRoute(u.nl, self.netlink(index, TableUnderlay)); err != nil {
			return err
		}
	}
	// Gateways come after what leads to them.
	for _, gateways := range []bool{false, true} {
		for _, r := range u.saved.Routes {
			if r.Via.IsValid() != gateways {
				continue
			}
			if err := addRoute(u.nl, r.netlink(index, TableUnderlay)); err != nil {
				return err
			}
		}
	}
	for i := len(u.saved.Routes) - 1; i >= 0; i-- {
		err := u.nl.RouteDel(u.saved.Routes[i].netlink(index, unix.RT_TABLE_MAIN))
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove the cluster's route to %s from the main table: %w", u.saved.Routes[i].Dst, err)
		}
	}
	return nil
}

func (r route) netlink(index, table int) *netlink.Route {
	n := &netlink.Route{LinkIndex: index, Table: table, Type: r.Kind, Scope: netlink.Scope(r.Scope), MTU: r.MTU, Protocol: unix.RTPROT_STATIC}
	if table == unix.RT_TABLE_MAIN {
		n.Protocol = 0
	}
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

// addRoute adds a route that may be there already. A gateway that the table does
// not lead to is one on the link, as with CNI plugins that route by link scope.
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
