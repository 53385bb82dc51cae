// Package fabric configures the routers of a lab as one fabric: fabric.yaml says which nodes
// belong to it, which protocols they speak and which VLANs they carry, and the package
// allocates addresses and numbers and writes a startup-config for each node.
package fabric

import (
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/policy"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// FileNames are the names of the fabric file next to a topology, the preferred one first.
var FileNames = []string{"fabric.yaml", "fabric.yml"}

// APIVersion and Kind head every fabric file.
const (
	APIVersion = "c9s.dev/v1"
	Kind       = "Fabric"
)

// The protocols of underlay and overlay.
const (
	OSPF = "ospf"
	ISIS = "isis"
	EBGP = "ebgp"
	IBGP = "ibgp"
)

// How VTEPs replicate broadcast frames, unknown unicast and multicast (BUM).
const (
	Ingress   = "ingress"
	Multicast = "multicast"
)

// Unnumbered is the value of underlay.links for links without IPv4 addresses.
const Unnumbered = "unnumbered"

// File is a fabric file.
type File struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Pools are the addresses, prefixes and numbers that the fabric may use, by name.
	Pools    map[string]Pool `json:"pools"`
	Members  Members         `json:"members"`
	Underlay Underlay        `json:"underlay"`
	Overlay  *Overlay        `json:"overlay,omitempty"`
	// Customers are members outside the underlay.
	Customers *Customers `json:"customers,omitempty"`
	// Access links lead from members to hosts and are routed.
	Access   *Access   `json:"access,omitempty"`
	VTEPs    *VTEPs    `json:"vteps,omitempty"`
	BUM      *BUM      `json:"bum,omitempty"`
	Services []Service `json:"services,omitempty"`
	// Multihoming are hosts with links to several VTEPs.
	Multihoming *Multihoming `json:"multihoming,omitempty"`
	// Prefer are values of single nodes, by the name of the node.
	Prefer map[string]Prefer `json:"prefer,omitempty"`
	// Merge appends the generated configuration to a node's own startup-config if the kind takes
	// partial ones. Otherwise such a node keeps its own.
	Merge topology.Bool `json:"merge,omitempty"`
}

// Pool has exactly one of Addresses, Prefixes and Numbers.
type Pool struct {
	// Addresses are prefixes from which single addresses are taken.
	Addresses []topology.Str `json:"addresses,omitempty"`
	// Prefixes are prefixes from which shorter ones of Length bits are taken.
	Prefixes []topology.Str `json:"prefixes,omitempty"`
	Length   topology.Int   `json:"length,omitempty"`
	// Numbers are single numbers and ranges: 65001-65534.
	Numbers []topology.Str `json:"numbers,omitempty"`
	// Order is lowest (the default) or hash, which depends on the owner alone as far as possible.
	Order topology.Str `json:"order,omitempty"`
	// Reclaim is retain (the default), which keeps the values of removed nodes, or recycle.
	Reclaim topology.Str `json:"reclaim,omitempty"`
	Pos     diag.Pos     `json:"-"`
}

// Members are the nodes of the fabric.
type Members struct {
	Match policy.Selector `json:"match"`
	// Loopbacks is the pool of router ids, which are addresses of the loopbacks too.
	Loopbacks topology.Str `json:"loopbacks"`
	Pos       diag.Pos     `json:"-"`
}

// Underlay routes between the loopbacks.
type Underlay struct {
	// Protocol is ospf, isis or ebgp.
	Protocol topology.Str `json:"protocol"`
	// Links is a pool of prefixes of 31 or 30 bits, or "unnumbered".
	Links topology.Str `json:"links"`
	// ASNs is the pool of AS numbers, for ebgp.
	ASNs topology.Str `json:"asns,omitempty"`
	// SharedASN are groups of the topology whose nodes share one AS number.
	SharedASN []topology.Str `json:"sharedASN,omitempty"`
	// Ports is the number of ports for which members between others (without hosts, customers and
	// tunnels) are configured in advance, so that a new link changes no configuration.
	Ports topology.Int `json:"ports,omitempty"`
	Pos   diag.Pos     `json:"-"`
}

// Overlay carries EVPN routes.
type Overlay struct {
	// Protocol is ibgp, over an underlay of ospf or isis, or ebgp, in the sessions of the underlay.
	Protocol topology.Str `json:"protocol"`
	// ASN is the AS number of ibgp.
	ASN topology.Int `json:"asn,omitempty"`
	// Reflectors are the route reflectors of ibgp. Without any, all VTEPs are neighbours.
	Reflectors policy.Selector `json:"reflectors,omitempty"`
	Pos        diag.Pos        `json:"-"`
}

// Customers are members that speak eBGP to their neighbours and take no part in the underlay. The
// other members exchange the customers' routes by iBGP.
type Customers struct {
	Match policy.Selector `json:"match"`
	// ASNs is the pool of their AS numbers.
	ASNs topology.Str `json:"asns"`
	Pos  diag.Pos     `json:"-"`
}

// Access is what hosts are reached by that have no VLAN: each link to one has a subnet of its own,
// which its router announces.
type Access struct {
	// Hosts selects the nodes at the far ends of the members' ports.
	Hosts policy.Selector `json:"hosts"`
	// Links is a pool of prefixes of 31 or 30 bits.
	Links topology.Str `json:"links"`
	// Routes are prefixes that Linux hosts reach by their router.
	Routes []topology.Str `json:"routes,omitempty"`
	Pos    diag.Pos       `json:"-"`
}

// VTEPs are the ends of the VXLAN tunnels.
type VTEPs struct {
	Match policy.Selector `json:"match"`
	// Addresses is the pool of their tunnel addresses; without it, they use their router ids.
	Addresses topology.Str `json:"addresses,omitempty"`
	// GatewayMAC is the MAC address of the gateways, the same on all VTEPs.
	GatewayMAC topology.Str `json:"gatewayMAC,omitempty"`
	Pos        diag.Pos     `json:"-"`
}

// BUM is how frames reach all VTEPs of a VLAN: broadcasts, multicasts, and those to unknown
// addresses.
type BUM struct {
	// Replication is ingress (the default), where a VTEP sends a copy to each other VTEP, or
	// multicast, where the underlay copies frames along the tree of a multicast group (PIM-SM).
	Replication topology.Str `json:"replication"`
	// Groups is the pool of multicast groups. Each service gets its own.
	Groups     topology.Str `json:"groups,omitempty"`
	Rendezvous *Rendezvous  `json:"rendezvous,omitempty"`
	Pos        diag.Pos     `json:"-"`
}

// Rendezvous are the rendezvous points of PIM.
type Rendezvous struct {
	Match policy.Selector `json:"match"`
	// Addresses is the pool of their anycast address, which all of them share.
	Addresses topology.Str `json:"addresses"`
	Pos       diag.Pos     `json:"-"`
}

// Service is a VLAN that spans the fabric.
type Service struct {
	Name topology.Str `json:"name"`
	VLAN topology.Int `json:"vlan"`
	VNI  topology.Int `json:"vni"`
	// Match selects the VTEPs that have the VLAN (default: all).
	Match policy.Selector `json:"match,omitempty"`
	// Hosts selects the nodes at the far ends of the VTEPs' ports in the VLAN.
	Hosts policy.Selector `json:"hosts,omitempty"`
	// Gateway is the address of the gateway with the length of the subnet: 10.10.10.1/24. VLANs
	// with a gateway are routed, and their hosts get addresses.
	Gateway topology.Str `json:"gateway,omitempty"`
	// Routes are prefixes that Linux hosts reach by the gateway.
	Routes []topology.Str `json:"routes,omitempty"`
	Pos    diag.Pos       `json:"-"`
}

// Multihoming makes the links of a host to several VTEPs of a service one Ethernet segment, all of
// whose links are in use (RFC 7432).
type Multihoming struct {
	Hosts policy.Selector `json:"hosts"`
	Pos   diag.Pos        `json:"-"`
}

// Prefer are values that a node has in place of allocated ones.
type Prefer struct {
	Loopback topology.Str `json:"loopback,omitempty"`
	VTEP     topology.Str `json:"vtep,omitempty"`
	ASN      topology.Int `json:"asn,omitempty"`
	Pos      diag.Pos     `json:"-"`
}
