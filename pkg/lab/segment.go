package lab

import (
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// Segment is a network that the policy declares. It becomes a bridge node with a link to each
// member.
type Segment struct {
	// Name is that of the bridge node.
	Name string
	Pos  diag.Pos
	// Subnet is where the members' addresses come from, not valid for none.
	Subnet    netip.Prefix
	SubnetPos diag.Pos
	Gateway   Gateway
	// Interface is that of a gateway that is not a member and names none.
	Interface string
	// Forward is the bridge's group forward mask.
	Forward uint16
	// Isolate keeps members from reaching each other: they reach the gateway only.
	Isolate bool
	// Members selects the members among the nodes of a lab.
	Members func(nodes []*Node, diags *diag.List) []Member
}

// Gateway is the gateway of a segment.
type Gateway struct {
	// Address is reserved; it is not valid in a segment without a subnet.
	Address netip.Addr
	// Node has the address on Interface, which may be "" for that of the members. Without a
	// Node, the address belongs to nobody.
	Node, Interface string
	Pos             diag.Pos
}

// Member is a node that joins a segment with an interface.
type Member struct {
	Node      *Node
	Interface string
	// Pos is where the policy names the interface.
	Pos diag.Pos
}

// ForwardBits are the protocols whose link-local frames a bridge can forward, with their bits in the group forward
// mask: bit n is 01:80:C2:00:00:0n (IEEE 802.1Q, table 8-1). Bridges always forward STP, because
// they run no STP themselves, and never pause frames (net/bridge/br_input.c, br_handle_frame).
var ForwardBits = map[string]uint16{
	"lacp":  1 << 0x2,
	"eapol": 1 << 0x3,
	"lldp":  1 << 0xe,
}
