package mgmt

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/link"
	"github.com/c9s-lab/c9s/sidecar/nft"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// Router is the router between the device's eth0, the mesh and the cluster, in the sidecar's
// namespace.
type Router struct {
	nl *netlink.Handle
	// device is the device's namespace, where eth0 is, and nlDevice its handle; own
	// is the descriptor of the router's.
	device   *nspace.Namespace
	nlDevice *netlink.Handle
	own      int
	mgmt     *contract.Mgmt
	// bridged are legs of other interfaces on the management network. If there are any,
	// the leg is a bridge, and addresses of no peer are routed to it rather than to the
	// mesh.
	bridged []string
	peers   []netip.Addr
	// denyTo and denyFrom are the addresses of the Pods that the section denies.
	denyTo, denyFrom []netip.Addr
	// layout is what the routes were last written for.
	layout string
}

// NewRouter returns a router in the namespace of the handle and of the caller, whose
// descriptor is own.
func NewRouter(nl *netlink.Handle, own int, device *nspace.Namespace, nlDevice *netlink.Handle) *Router {
	return &Router{nl: nl, own: own, device: device, nlDevice: nlDevice}
}

// network is one family of the management network.
type network struct {
	device  netip.Prefix
	gateway netip.Addr
}

func (m *Router) network(family int) (network, bool) {
	if m.mgmt == nil {
		return network{}, false
	}
	n := network{m.mgmt.IPv4, m.mgmt.GatewayV4}
	if family == netlink.FAMILY_V6 {
		n = network{m.mgmt.IPv6, m.mgmt.GatewayV6}
	}
	return n, n.device.IsValid() && n.gateway.IsValid()
}

func (m *Router) networks() []network {
	var all []network
	for _, family := range families {
		if n, ok := m.network(family); ok {
			all = append(all, n)
		}
	}
	return all
}

var families = []int{netlink.FAMILY_V4, netlink.FAMILY_V6}

// Firewall adds the management network to the firewall's configuration.
func (m *Router) Firewall(c *nft.Config) {
	if m.mgmt == nil {
		return
	}
	c.Leg, c.Mesh, c.ExternalAccess = LegName, MeshName, m.mgmt.ExternalAccess
	c.DenyTo, c.DenyFrom, c.External = m.denyTo, m.denyFrom, m.mgmt.External
	for _, n := range m.networks() {
		c.Mgmt = append(c.Mgmt, nft.Network{Device: n.device, Gateway: n.gateway})
	}
}

// Set sets the management section of links.json, the legs of interfaces on the management
// network, and the addresses of the lab's nodes.
func (m *Router) Set(mgmt *contract.Mgmt, bridged []string, nodes map[netip.Addr]string) {
	m.mgmt, m.bridged, m.peers, m.denyTo, m.denyFrom = mgmt, bridged, nil, nil, nil
	if mgmt == nil {
		return
	}
	m.denyTo, m.denyFrom = addressesOf(mgmt.DenyTo, nodes), addressesOf(mgmt.DenyFrom, nodes)
	if len(bridged) == 0 {
		return
	}
	for a := range nodes {
		if a != mgmt.IPv4.Addr() && a != mgmt.IPv6.Addr() {
			m.peers = append(m.peers, a)
		}
	}
}

// addressesOf returns the addresses of Pods, sorted.
func addressesOf(pods []string, nodes map[netip.Addr]string) []netip.Addr {
	if len(pods) == 0 {
		return nil
	}
	wanted := make(map[string]bool, len(pods))
	for _, pod := range pods {
		wanted[pod] = true
	}
	var out []netip.Addr
	for a, pod := range nodes {
		if wanted[pod] {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// Rules ensures the policy routing of both families.
func (m *Router) Rules() error {
	var errs []error
	for _, family := range families {
		errs = append(errs, m.ensureRules(family))
	}
	return errors.Join(errs...)
}

// Ensure ensures eth0 with its leg, and the routes between them and the mesh.
func (m *Router) Ensure(snap *link.Snapshot, mesh netlink.Link) error {
	if m.mgmt == nil {
		return m.remove(snap)
	}
	leg, err := m.ensureLeg(snap)
	if err != nil {
		return err
	}
	if err := m.sysctls(); err != nil {
		return err
	}
	layout := fmt.Sprint(m.networks(), len(m.bridged) > 0, leg.Attrs().Index, mesh != nil && mesh.Attrs().Index > 0)
	if m.layout != "" && m.layout != layout {
		if err := m.flush(); err != nil {
			return err
		}
	}
	for _, n := range m.networks() {
		if err := m.ensureNetwork(n, leg, mesh, layout != m.layout); err != nil {
			return err
		}
	}
	m.layout = layout
	return nil
}

// flush empties the table of another management network.
func (m *Router) flush() error {
	for _, family := range families {
		routes, err := m.nl.RouteListFiltered(family, &netlink.Route{Table: TableMgmt}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("routes in table %d: %w", TableMgmt, err)
		}
		for _, r := range routes {
			if err := m.nl.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("remove the route to %s from table %d: %w", r.Dst, TableMgmt, err)
			}
		}
	}
	return nil
}

func (m *Router) remove(snap *link.Snapshot) error {
	for _, name := range []string{LegName, portName} {
		if l := snap.ByName(name); l != nil {
			if err := m.nl.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
				return fmt.Errorf("remove %s: %w", name, err)
			}
		}
	}
	return nil
}

// sysctls turns the namespace into a router.
func (m *Router) sysctls() error {
	var errs []error
	set := func(value string, path ...string) { errs = append(errs, link.SetSysctl(value, path...)) }
	set("1", "net", "ipv4", "ip_forward")
	// Routes depend on the incoming interface, so the kernel's reverse path would be
	// another one.
	set("0", "net", "ipv4", "conf", "all", "rp_filter")
	for _, name := range []string{UnderlayName, LegName, MeshName} {
		set("0", "net", "ipv4", "conf", name, "rp_filter")
		set("0", "net", "ipv4", "conf", name, "send_redirects")
	}
	for _, name := range []string{UnderlayName, LegName} {
		// Answer the cluster only for the Pod's addresses, and the device only for the
		// gateway's and, by proxy, for peers'. An answer for the device's own address
		// would look like a duplicate to it.
		set("1", "net", "ipv4", "conf", name, "arp_ignore")
		set("2", "net", "ipv4", "conf", name, "arp_announce")
	}
	for _, name := range []string{LegName, MeshName} {
		set("0", "net", "ipv4", "neigh", name, "proxy_delay")
		set("0", "net", "ipv6", "neigh", name, "proxy_delay")
	}
	if m.mgmt.IPv6.IsValid() {
		for _, name := range []string{LegName, MeshName} {
			set("0", "net", "ipv6", "conf", name, "disable_ipv6")
			set("1", "net", "ipv6", "conf", name, "proxy_ndp")
			set("0", "net", "ipv6", "conf", name, "accept_ra")
		}
		// For probes of peers' neighbour caches, which are unicast (ip6_forward).
		set("1", "net", "ipv6", "conf", "all", "proxy_ndp")
		set("1", "net", "ipv6", "conf", "all", "forwarding")
	}
	return errors.Join(errs...)
}

// ensureNetwork ensures the addresses and routes of one family.
func (m *Router) ensureNetwork(n network, leg, mesh netlink.Link, fresh bool) error {
	self := link.Addr(netip.PrefixFrom(n.gateway, n.gateway.BitLen()))
	if n.gateway.Is4() {
		// Link scope: never the source of anything that leaves the link.
		self.Scope = unix.RT_SCOPE_LINK
	} else {
		self.Flags |= unix.IFA_F_NOPREFIXROUTE
		// Deprecated: never chosen for a source by itself.
		self.PreferedLft, self.ValidLft = 0, forever
	}
	have, err := m.nl.AddrList(leg, familyOf(n.gateway))
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("addresses of %s: %w", LegName, err)
	}
	found := false
	for _, a := range have {
		switch ip := addr(a.IP); {
		case ip == n.gateway:
			found = true
		case !ip.IsLinkLocalUnicast():
			if err := m.nl.AddrDel(leg, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return fmt.Errorf("remove address %s of %s: %w", ip, LegName, err)
			}
		}
	}
	if !found {
		if err := m.nl.AddrReplace(leg, self); err != nil {
			return fmt.Errorf("address %s of %s: %w", n.gateway, LegName, err)
		}
	}
	routes := []*netlink.Route{
		{LinkIndex: leg.Attrs().Index, Table: TableMgmt, Dst: single(n.device.Addr()), Src: n.gateway.AsSlice(), Scope: netlink.SCOPE_LINK},
	}
	subnet := mesh
	if len(m.bridged) > 0 {
		subnet = leg
		for _, a := range m.peers {
			if mesh != nil && a.Is4() == n.gateway.Is4() {
				routes = append(routes, &netlink.Route{LinkIndex: mesh.Attrs().Index, Table: TableMgmt, Dst: single(a), Scope: netlink.SCOPE_LINK})
			}
		}
	}
	if subnet != nil {
		r := &netlink.Route{LinkIndex: subnet.Attrs().Index, Table: TableMgmt, Dst: link.IPNet(n.device.Masked()), Scope: netlink.SCOPE_LINK}
		if fresh {
			r.Protocol = unix.RTPROT_STATIC
			if err := m.nl.RouteReplace(r); err != nil {
				return fmt.Errorf("route to %s in table %d: %w", r.Dst, r.Table, err)
			}
		}
		routes = append(routes, r)
	}
	for _, r := range routes {
		r.Protocol = unix.RTPROT_STATIC
		if err := addRoute(m.nl, r); err != nil {
			return err
		}
	}
	return nil
}

// forever is the infinite lifetime in seconds (RFC 4861, 4.6.2).
const forever = 0xffffffff

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}
