package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// LinksVersion is the version of Links in JSON.
const LinksVersion = "c9s.dev/links/v1"

// LinksDigest identifies the contents of a links.json, for Topology.Pods and the sidecar's
// status.
func LinksDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// RenewLinksDigest replaces the digest of a Pod's links in the text of a Topology. It returns
// the text unchanged if that does not have the digest of before.
func RenewLinksDigest(topology, pod, before, after string) string {
	member := func(links string) string { return fmt.Sprintf("%q:%q", pod, LinksDigest([]byte(links))) }
	return strings.Replace(topology, member(before), member(after), 1)
}

// LinksFile is the key in the <pod>-links ConfigMap.
const LinksFile = "links.json"

// Links is the connectivity of one Pod: the state that its sidecar maintains.
type Links struct {
	Version string `json:"version"`
	Lab     string `json:"lab"`
	// Pod is the Kubernetes name of the Pod's objects; peers resolve PodHost(Pod).
	Pod string `json:"pod"`
	// Encrypt encrypts the frames on the wires with the lab's key. It is the same
	// for all Pods of a lab. Without a key the wires do not start.
	Encrypt bool `json:"encrypt,omitempty"`
	// Mgmt is nil for a Pod without a management interface.
	Mgmt *Mgmt `json:"mgmt,omitempty"`
	// Hostname is the device's, exactly as written (the primary node's).
	Hostname string `json:"hostname"`
	// Sysctls of the Pod's network, IPC and UTS namespaces (net.*, kernel.shm*,
	// fs.mqueue.*, ...), set before any device starts.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Bridges are created before the interfaces.
	Bridges []Bridge `json:"bridges,omitempty"`
	// Interfaces are created in this order.
	Interfaces []Interface `json:"interfaces,omitempty"`
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
	// External has the prefixes for which ExternalAccess does not hold, the longest ones first.
	External []ExternalRule `json:"external,omitempty"`
	// DenyTo are the Pods to which the device may open no connections on the management
	// network, DenyFrom those from which it gets none.
	DenyTo   []string `json:"denyTo,omitempty"`
	DenyFrom []string `json:"denyFrom,omitempty"`
}

// ExternalRule says whether a device reaches a prefix outside the lab.
type ExternalRule struct {
	Prefix netip.Prefix `json:"prefix"`
	Allow  bool         `json:"allow"`
}

// Outside reports whether the device reaches anything beyond the lab.
func (m *Mgmt) Outside() bool {
	for _, own := range []netip.Prefix{m.IPv4, m.IPv6} {
		if !own.IsValid() {
			continue
		}
		all := m.ExternalAccess
		for _, r := range m.External {
			if r.Prefix.Addr().Is4() != own.Addr().Is4() {
				continue
			}
			if r.Allow {
				return true
			}
			if r.Prefix.Bits() == 0 {
				all = false
			}
		}
		if all {
			return true
		}
	}
	return false
}

// ReadMgmt reads the management section of a links.json.
func ReadMgmt(file string) (*Mgmt, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var links struct {
		Mgmt *Mgmt `json:"mgmt"`
	}
	if err := json.Unmarshal(data, &links); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return links.Mgmt, nil
}

// Bridge is a Linux bridge of the Pod: a bridge or ovs-bridge node.
type Bridge struct {
	Name string `json:"name"`
	// GroupForwardMask lets link-local groups pass (bit n = 01:80:C2:00:00:0n).
	GroupForwardMask uint16 `json:"groupForwardMask"`
}

// Interface is one data interface.
type Interface struct {
	// Name is the Linux name. A name of over 15 characters or with "/" or a space
	// becomes an altname.
	Name  string       `json:"name"`
	Alias string       `json:"alias,omitempty"`
	Node  string       `json:"node"`
	MAC   string       `json:"mac"`
	MTU   int          `json:"mtu,omitempty"`
	IPv4  netip.Prefix `json:"ipv4,omitzero"`
	IPv6  netip.Prefix `json:"ipv6,omitzero"`
	// Bridge is the master, for a port of a bridge node.
	Bridge string `json:"bridge,omitempty"`
	// Isolated keeps a port from the other isolated ports of its bridge.
	Isolated bool `json:"isolated,omitempty"`
	// Exactly one of the following is set; a dummy has Dummy.
	Wire    *Wire    `json:"wire,omitempty"`
	Local   *Local   `json:"local,omitempty"`
	Host    *Host    `json:"host,omitempty"`
	Macvlan *Macvlan `json:"macvlan,omitempty"`
	VXLAN   *VXLAN   `json:"vxlan,omitempty"`
	// Stitch means that VXLAN is a separate device, joined to the interface by
	// tc, rather than the interface itself.
	Stitch  bool     `json:"stitch,omitempty"`
	MgmtNet *MgmtNet `json:"mgmtNet,omitempty"`
	Dummy   bool     `json:"dummy,omitempty"`
}

// WireID identifies one wire in the lab, 1..16777215 (it fits a VXLAN VNI, RFC 7348).
type WireID uint32

// Wire leads to an interface of another Pod.
type Wire struct {
	ID WireID `json:"id"`
	// PeerPod, PeerNode and PeerInterface name the far end.
	PeerPod       string `json:"peerPod"`
	PeerNode      string `json:"peerNode"`
	PeerInterface string `json:"peerInterface"`
	// Datapath is auto, udp, vxlan or local.
	Datapath string `json:"datapath"`
	// Impairment of the frames that this end sends; nil for none.
	Impairment *Impairment `json:"impairment,omitempty"`
	// Fault is what takes the place of Impairment for a while; nil for none.
	Fault *Fault `json:"fault,omitempty"`
}

// Local leads to another interface of the same Pod.
type Local struct {
	ID            WireID `json:"id"`
	PeerNode      string `json:"peerNode"`
	PeerInterface string `json:"peerInterface"`
	// Impairment of the frames that this end sends; nil for none.
	Impairment *Impairment `json:"impairment,omitempty"`
	// Fault is what takes the place of Impairment for a while; nil for none.
	Fault *Fault `json:"fault,omitempty"`
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

// VXLAN is a tunnel to outside the lab.
type VXLAN struct {
	// Remote is an IP address or a DNS name.
	Remote  string `json:"remote"`
	VNI     int    `json:"vni"`
	DstPort int    `json:"dstPort"`
	SrcPort int    `json:"srcPort,omitempty"`
	Parent  string `json:"parent,omitempty"`
}

// MgmtNet is an interface on the lab's management network.
type MgmtNet struct {
	// HostInterface is the name that the topology gives the bridge's port.
	HostInterface string `json:"hostInterface"`
}

// Port is one published port. In a Pod only the container side has a meaning.
type Port struct {
	Container uint16 `json:"container"`
	// Protocol is TCP, UDP or SCTP.
	Protocol string `json:"protocol"`
	// Host is the host side that the user wrote, 0 if none.
	Host uint16 `json:"host,omitempty"`
}
