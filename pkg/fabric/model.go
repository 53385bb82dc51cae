package fabric

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// Plan is a fabric with all its addresses and numbers.
type Plan struct {
	Underlay string `json:"underlay"`
	Overlay  string `json:"overlay,omitempty"`
	// Rendezvous is the anycast address of the rendezvous points; invalid unless the underlay
	// replicates by multicast.
	Rendezvous netip.Addr `json:"rendezvous,omitzero"`
	// Nodes are the members, in the order of their names.
	Nodes []*Node `json:"nodes"`
	lab   *lab.Lab
	// evpn and unicast are the families of an overlay: EVPN for VTEPs, IPv4 for customers.
	evpn, unicast bool
	// tunnelMTU is what the interfaces of hosts can have so that their frames fit into tunnels.
	tunnelMTU int
	// groups are the ranges of multicast groups, rendezvous their rendezvous points.
	groups     []netip.Prefix
	rendezvous []*Node
	// multihoming reports whether there are Ethernet segments.
	multihoming bool
}

// The roles of a node.
const (
	RoleVTEP      = "vtep"
	RoleReflector = "reflector"
	RoleRouter    = "router"
	RoleCustomer  = "customer"
)

// Node is a member of the fabric.
type Node struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Role is vtep, reflector, customer or router.
	Role     string     `json:"role"`
	RouterID netip.Addr `json:"routerID"`
	// ASN is 0 for a node without BGP.
	ASN uint32 `json:"asn,omitempty"`
	// VTEP is the address of its tunnels; invalid unless it is a VTEP.
	VTEP netip.Addr `json:"vtep,omitzero"`
	// Rendezvous reports whether it is a rendezvous point.
	Rendezvous bool `json:"rendezvous,omitempty"`
	// Links lead to other members, Access to hosts.
	Links  []Link       `json:"links"`
	Access []AccessPort `json:"access,omitempty"`
	// Peers are its neighbours in an overlay of ibgp.
	Peers    []Peer          `json:"peers,omitempty"`
	Services []*LocalService `json:"services,omitempty"`
	// OwnConfig reports whether the node keeps its own startup-config.
	OwnConfig bool `json:"ownConfig,omitempty"`
	// Config is the generated configuration.
	Config string `json:"-"`

	node *lab.Node
	kind *kind
	plan *Plan
	// advance is nil for a node that is configured for its neighbours only.
	advance *advance
}

// Link is a link to another member, seen from one end.
type Link struct {
	// Interface is the Linux name, Device the device's own.
	Interface string `json:"interface"`
	Device    string `json:"device"`
	// Address and PeerAddress are invalid for unnumbered links.
	Address       netip.Prefix `json:"address,omitzero"`
	Peer          string       `json:"peer"`
	PeerInterface string       `json:"peerInterface"`
	PeerAddress   netip.Addr   `json:"peerAddress,omitzero"`
	PeerASN       uint32       `json:"peerASN,omitempty"`
	MTU           int          `json:"mtu,omitempty"`
	// Session reports whether the ends speak eBGP over the link. Otherwise the protocol of the
	// underlay is an IGP.
	Session bool `json:"session,omitempty"`

	toCustomer bool
	endpoint   *lab.Endpoint
}

// AccessPort is a routed port to a host.
type AccessPort struct {
	Interface string       `json:"interface"`
	Device    string       `json:"device"`
	Address   netip.Prefix `json:"address"`
	Peer      string       `json:"peer"`
	MTU       int          `json:"mtu,omitempty"`

	endpoint *lab.Endpoint
}

// Network is the subnet of the link.
func (p AccessPort) Network() netip.Prefix { return p.Address.Masked() }

// Peer is a neighbour in an overlay of ibgp.
type Peer struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	// Client reports whether it is a client of this node, a route reflector.
	Client bool `json:"client,omitempty"`
}

// LocalService is a service on one VTEP.
type LocalService struct {
	Name string `json:"name"`
	VLAN int    `json:"vlan"`
	VNI  int    `json:"vni"`
	// Group is the multicast group of broadcast frames; invalid with ingress replication.
	Group netip.Addr `json:"group,omitzero"`
	// Gateway is invalid for a VLAN that is not routed.
	Gateway    netip.Prefix `json:"gateway,omitzero"`
	GatewayMAC string       `json:"gatewayMAC,omitempty"`
	Ports      []Port       `json:"ports,omitempty"`
	// Segments are the ports of multihomed hosts.
	Segments []*Segment `json:"segments,omitempty"`

	spec *Service
}

// Port is an untagged port of a VLAN.
type Port struct {
	Interface string `json:"interface"`
	Device    string `json:"device"`
	Peer      string `json:"peer"`

	endpoint *lab.Endpoint
}

// allPorts are the ports of the service, in segments or not.
func (s *LocalService) allPorts() []Port {
	out := slices.Clone(s.Ports)
	for _, segment := range s.Segments {
		out = append(out, segment.Ports...)
	}
	return out
}

// RouteTarget is the EVPN route target of the service, the same on all VTEPs.
func (s *LocalService) RouteTarget() string { return fmt.Sprintf("%d:%d", routeTargetASN, s.VNI) }

// Label is the name of the VLAN on devices: that of the service, or the one that devices use
// themselves if that has other characters or is too long.
func (s *LocalService) Label() string {
	if plainName.MatchString(s.Name) {
		return s.Name
	}
	return fmt.Sprintf("VLAN%04d", s.VLAN)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$`)

// routeTargetASN is the first part of route targets. A fabric of ebgp has no common AS number.
const routeTargetASN = 65000

// The following are for templates.

// Underlay and Overlay are the protocols of the fabric.
func (n *Node) Underlay() string { return n.plan.Underlay }
func (n *Node) Overlay() string  { return n.plan.Overlay }

// EVPN and Unicast report whether the node exchanges EVPN routes, and customers' IPv4 routes in
// iBGP.
func (n *Node) EVPN() bool    { return n.plan.evpn && n.Role != RoleCustomer }
func (n *Node) Unicast() bool { return n.plan.unicast && len(n.Peers) > 0 }

// Announces reports whether the node announces its loopbacks and access links by BGP, since it is
// in no IGP.
func (n *Node) Announces() bool { return n.Underlay() == EBGP || n.Role == RoleCustomer }

// IGPLinks are the links in the IGP of the underlay, and the ports that are configured in
// advance.
func (n *Node) IGPLinks() []Link { return n.advance.withPorts(n.linksWith(false)) }

// Sessions are the links over which this node opens an eBGP session.
func (n *Node) Sessions() []Link {
	links := n.linksWith(true)
	if n.advance != nil && n.Underlay() == EBGP && n.advance.links == nil {
		return n.advance.withPorts(links)
	}
	return n.advance.opened(links)
}

func (n *Node) linksWith(session bool) []Link {
	var out []Link
	for _, l := range n.Links {
		if l.Session == session {
			out = append(out, l)
		}
	}
	return out
}

// IGP is the IGP of the node: ospf, isis or "".
func (n *Node) IGP() string {
	if n.Announces() {
		return ""
	}
	return n.Underlay()
}

// TunnelMTU is the MTU of VXLAN interfaces in bytes.
func (n *Node) TunnelMTU() int { return n.plan.tunnelMTU }

// LinkMTU is the MTU of packets that hold the frames of VXLAN interfaces.
func (n *Node) LinkMTU() int { return n.plan.tunnelMTU + vxlanOverhead }

// IsVTEP and IsReflector report the role of the node.
func (n *Node) IsVTEP() bool      { return n.VTEP.IsValid() }
func (n *Node) IsReflector() bool { return n.Role == RoleReflector }

// OwnVTEP reports whether the address of the tunnels is not the router id.
func (n *Node) OwnVTEP() bool { return n.IsVTEP() && n.VTEP != n.RouterID }

// Loopbacks are the addresses of the node's loopback.
func (n *Node) Loopbacks() []netip.Addr {
	out := []netip.Addr{n.RouterID}
	if n.OwnVTEP() {
		out = append(out, n.VTEP)
	}
	if n.Rendezvous {
		out = append(out, n.plan.Rendezvous)
	}
	return out
}

// NET is the network entity title of IS-IS: area 49.0001 and the digits of the router id.
func (n *Node) NET() string {
	b := n.RouterID.As4()
	digits := fmt.Sprintf("%03d%03d%03d%03d", b[0], b[1], b[2], b[3])
	return "49.0001." + digits[:4] + "." + digits[4:8] + "." + digits[8:] + ".00"
}

// Hostname and the credentials are those of the topology.
func (n *Node) Hostname() string { return n.node.Hostname }
func (n *Node) Username() string { return n.node.Credentials.Username }
func (n *Node) Password() string { return n.node.Credentials.Password }

// MgmtIPv4 and MgmtIPv6 are the management addresses with the lengths of their subnets, "" for
// none.
func (n *Node) MgmtIPv4() string { return withBits(n.node.MgmtIPv4, n.plan.lab.Mgmt.IPv4.Subnet) }
func (n *Node) MgmtIPv6() string { return withBits(n.node.MgmtIPv6, n.plan.lab.Mgmt.IPv6.Subnet) }

func withBits(a netip.Addr, subnet netip.Prefix) string {
	if !a.IsValid() {
		return ""
	}
	return netip.PrefixFrom(a, subnet.Bits()).String()
}

// MgmtGateway4 and MgmtGateway6 are the gateways of the management network, "" for a node
// without an address of the family.
func (n *Node) MgmtGateway4() string {
	if !n.node.MgmtIPv4.IsValid() {
		return ""
	}
	return n.plan.lab.Mgmt.IPv4.Gateway.String()
}

func (n *Node) MgmtGateway6() string {
	if !n.node.MgmtIPv6.IsValid() {
		return ""
	}
	return n.plan.lab.Mgmt.IPv6.Gateway.String()
}

// Mask is the mask of the link's subnet: 255.255.255.254.
func (l Link) Mask() string       { return mask(l.Address) }
func (p AccessPort) Mask() string { return mask(p.Address) }

func mask(p netip.Prefix) string { return net.IP(net.CIDRMask(p.Bits(), 32)).String() }

// FrameMTU is the MTU of a port with its Ethernet header, in bytes, as IOS XR counts it.
func (l Link) FrameMTU() int       { return l.MTU + ethernetHeader }
func (p AccessPort) FrameMTU() int { return p.MTU + ethernetHeader }

const ethernetHeader = 14

// GatewayMAC is the MAC address of the node's gateways, "" for a node that routes no VLAN.
func (n *Node) GatewayMAC() string {
	for _, s := range n.Services {
		if s.Gateway.IsValid() {
			return s.GatewayMAC
		}
	}
	return ""
}

// VLANs are the VLANs of the node as text: "10, 20".
func (n *Node) VLANs() string {
	texts := make([]string, len(n.Services))
	for i, s := range n.Services {
		texts[i] = fmt.Sprint(s.VLAN)
	}
	return strings.Join(texts, ", ")
}
