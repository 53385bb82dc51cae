// Package links is the contract between render and the sidecar: links.json, the
// connectivity of one Pod.
package links

import (
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/lab/cable"
)

// Version names the shape of Document in JSON.
const Version = "c9s.dev/links/v1"

// FileName is the key in the <pod>-links ConfigMap.
const FileName = "links.json"

// Document is everything that the sidecar of one Pod keeps true.
type Document struct {
	Version string `json:"version"`
	Lab     string `json:"lab"`
	// Pod is the Kubernetes name of the Pod's objects; its wire Service is
	// WireService(Pod).
	Pod string `json:"pod"`
	// Encrypt seals what the wires carry, with the lab's key. All Pods of a lab
	// have the same; without a key the wires do not start.
	Encrypt bool `json:"encrypt,omitempty"`
	// Mgmt is nil for a Pod without a management interface.
	Mgmt *Mgmt `json:"mgmt,omitempty"`
	// Hostname is the device's, exactly as written (the primary node's).
	Hostname string `json:"hostname"`
	// Sysctls of the Pod's network, IPC and UTS namespaces (net.*, kernel.shm*,
	// fs.mqueue.*, ...), set before any device starts.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Bridges are made before the interfaces.
	Bridges []Bridge `json:"bridges,omitempty"`
	// Interfaces are made in this order.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Ports are forwarded from the Pod address to the management address, sorted
	// by protocol and port.
	Ports []cable.Port `json:"ports,omitempty"`
}

// Mgmt is the Pod's management interface, eth0.
type Mgmt struct {
	Interface string       `json:"interface"`
	MAC       string       `json:"mac"`
	MTU       int          `json:"mtu"`
	IPv4      netip.Prefix `json:"ipv4,omitzero"`
	IPv6      netip.Prefix `json:"ipv6,omitzero"`
	GatewayV4 netip.Addr   `json:"gatewayV4,omitzero"`
	GatewayV6 netip.Addr   `json:"gatewayV6,omitzero"`
	// ExternalAccess lets the device reach beyond the lab.
	ExternalAccess bool `json:"externalAccess"`
}

// Bridge is a Linux bridge of the Pod: a bridge or ovs-bridge node.
type Bridge struct {
	Name string `json:"name"`
	// GroupForwardMask lets link-local groups pass (bit n = 01:80:C2:00:00:0n).
	GroupForwardMask uint16 `json:"groupForwardMask"`
}

// Interface is one data interface.
type Interface struct {
	// Name is the Linux name; names of over 15 characters or with "/" or a
	// space become an altname.
	Name  string       `json:"name"`
	Alias string       `json:"alias,omitempty"`
	Node  string       `json:"node"`
	MAC   string       `json:"mac"`
	MTU   int          `json:"mtu,omitempty"`
	IPv4  netip.Prefix `json:"ipv4,omitzero"`
	IPv6  netip.Prefix `json:"ipv6,omitzero"`
	// Bridge is the master, for a port of a bridge node.
	Bridge string `json:"bridge,omitempty"`
	// Exactly one of the following is set; a dummy has Dummy.
	Wire    *Wire        `json:"wire,omitempty"`
	Local   *Local       `json:"local,omitempty"`
	Host    *Host        `json:"host,omitempty"`
	Macvlan *Macvlan     `json:"macvlan,omitempty"`
	VXLAN   *cable.VXLAN `json:"vxlan,omitempty"`
	// Stitch tells that VXLAN is a device of its own, joined to the interface by
	// tc, rather than the interface itself.
	Stitch  bool     `json:"stitch,omitempty"`
	MgmtNet *MgmtNet `json:"mgmtNet,omitempty"`
	Dummy   bool     `json:"dummy,omitempty"`
}

// Wire leads to an interface of another Pod.
type Wire struct {
	ID cable.WireID `json:"id"`
	// PeerPod, PeerNode and PeerInterface name the far end.
	PeerPod       string `json:"peerPod"`
	PeerNode      string `json:"peerNode"`
	PeerInterface string `json:"peerInterface"`
	// Datapath is auto, udp or vxlan.
	Datapath string `json:"datapath"`
	// Impairment of what this end sends; nil for none.
	Impairment *cable.Impairment `json:"impairment,omitempty"`
}

// Local leads to another interface of the same Pod.
type Local struct {
	ID            cable.WireID `json:"id"`
	PeerNode      string       `json:"peerNode"`
	PeerInterface string       `json:"peerInterface"`
	// Impairment of what this end sends; nil for none.
	Impairment *cable.Impairment `json:"impairment,omitempty"`
}

// Host leads to an interface in the worker's own network namespace.
type Host struct {
	Interface string `json:"interface"`
}

// Macvlan is a macvlan on an interface of the worker.
type Macvlan struct {
	Parent string `json:"parent"`
	Mode   string `json:"mode"`
}

// MgmtNet is an interface on the lab's management network.
type MgmtNet struct {
	// HostInterface is the name that the topology gives the bridge's port.
	HostInterface string `json:"hostInterface"`
}
