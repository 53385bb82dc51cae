package lab

import (
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// LinkType is how containerlab realises a link.
type LinkType string

// The link types. A veth link with an end on a bridge node stays LinkVeth: the
// end's Bridge field says.
const (
	LinkVeth        LinkType = "veth"
	LinkVethStitch  LinkType = "veth-stitch"
	LinkHost        LinkType = "host"
	LinkMgmtNet     LinkType = "mgmt-net"
	LinkMacvlan     LinkType = "macvlan"
	LinkVXLAN       LinkType = "vxlan"
	LinkVXLANStitch LinkType = "vxlan-stitch"
	LinkDummy       LinkType = "dummy"
)

// What the Pod knows of links too.
type (
	WireID     = contract.WireID
	VXLAN      = contract.VXLAN
	Impairment = contract.Impairment
)

// DefaultLinkMTU is containerlab's MTU for links, in bytes.
const DefaultLinkMTU = 9500

// Link is one resolved link.
type Link struct {
	Type LinkType `json:"type"`
	Pos  diag.Pos `json:"pos"`
	// MTU of the interfaces in bytes, 0 for "the parent's" (macvlan, vxlan).
	MTU    int               `json:"mtu,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Vars   map[string]any    `json:"vars,omitempty"`
	// WireID is set for links with two ends in the lab.
	WireID WireID `json:"wireID,omitempty"`
	// Endpoints: two for veth and veth-stitch, one for every other type.
	Endpoints []*Endpoint `json:"endpoints"`
	// HostInterface is the far side of host and mgmt-net, the parent of macvlan.
	HostInterface string `json:"hostInterface,omitempty"`
	// MacvlanMode is bridge, vepa, private, passthru or source.
	MacvlanMode string `json:"macvlanMode,omitempty"`
	VXLAN       *VXLAN `json:"vxlan,omitempty"`
	// Datapath is what the policy asks for: "" (auto), auto, udp, vxlan or local.
	Datapath string `json:"datapath,omitempty"`
	// Impairment as the policy file sets it, from end 0 to end 1 and back.
	Impairment *LinkImpairment `json:"impairment,omitempty"`
}

// Endpoint is one end of a link, on a node.
type Endpoint struct {
	Node string `json:"node"`
	// Interface is the Linux name; Alias is what the topology says where that
	// differs ("ethernet-1/1").
	Interface string `json:"interface"`
	Alias     string `json:"alias,omitempty"`
	MAC       string `json:"mac"`
	// MTU of this end in bytes where it differs from the link's, otherwise 0.
	MTU  int            `json:"mtu,omitempty"`
	IPv4 netip.Prefix   `json:"ipv4,omitzero"`
	IPv6 netip.Prefix   `json:"ipv6,omitzero"`
	Vars map[string]any `json:"vars,omitempty"`
	Pos  diag.Pos       `json:"pos"`
	// Bridge reports whether the node is a bridge: the interface is a port of it.
	Bridge bool `json:"bridge,omitempty"`
	// Isolated keeps a port of a bridge from the other isolated ones.
	Isolated bool `json:"isolated,omitempty"`
	// Link is the index in Lab.Links.
	Link int `json:"link"`
}

// Written is the interface's name as the topology writes it.
func (e *Endpoint) Written() string {
	if e.Alias != "" {
		return e.Alias
	}
	return e.Interface
}

// LinkImpairment holds both directions: AToB is what end 1 receives.
type LinkImpairment struct {
	AToB Impairment `json:"aToB,omitzero"`
	BToA Impairment `json:"bToA,omitzero"`
}

// Far returns the other end of a link between two interfaces, nil for a link of another form.
func (l *Link) Far(e *Endpoint) *Endpoint {
	switch {
	case len(l.Endpoints) != 2:
		return nil
	case l.Endpoints[0] == e:
		return l.Endpoints[1]
	}
	return l.Endpoints[0]
}
