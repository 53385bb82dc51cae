package policy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Segment is a network with selected nodes as members: a bridge with a link to each of them.
type Segment struct {
	// Name is that of the bridge among the nodes of the lab.
	Name topology.Str `json:"name"`
	// Subnet is the prefix of the members' addresses. Without it, they get none.
	Subnet topology.Str `json:"subnet,omitempty"`
	// Gateway is a node, an address, or both. Its address is the first one of the subnet
	// unless it has another one, and no member gets it.
	Gateway Gateway `json:"gateway,omitzero"`
	// Members are the nodes that join: one entry, or a list of them.
	Members Members `json:"members"`
	// Forward are the protocols whose link-local frames pass the bridge (default: lldp).
	Forward topology.List `json:"forward,omitempty"`
	// Isolate lets members reach only the gateway.
	Isolate bool     `json:"isolate,omitempty"`
	Pos     diag.Pos `json:"-"`
}

// Gateway is the gateway of a segment. Short forms are an address, NODE and NODE:INTERFACE.
type Gateway struct {
	// Node has the gateway's address.
	Node topology.Str `json:"node,omitempty"`
	// Interface is that of the node in the segment (default: that of members).
	Interface topology.Str `json:"interface,omitempty"`
	// Address is reserved (default: the first one of the subnet).
	Address topology.Str `json:"address,omitempty"`
	Pos     diag.Pos     `json:"-"`
}

// gatewayKeys has the fields of Gateway without its short forms.
type gatewayKeys Gateway

func (g *Gateway) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.ScalarNode {
		d.DecodeStruct(n, (*gatewayKeys)(g), path, nil)
		return
	}
	g.Pos = d.Pos(n)
	s := topology.Str{Value: n.Value, Pos: g.Pos}
	if _, err := netip.ParseAddr(n.Value); err == nil {
		g.Address = s
		return
	}
	node, iface, _ := strings.Cut(n.Value, ":")
	g.Node, g.Interface = topology.Str{Value: node, Pos: g.Pos}, topology.Str{Value: iface, Pos: g.Pos}
}

// Member selects nodes that join a segment with one interface.
type Member struct {
	// Match selects nodes. Without one, all nodes with a Pod join.
	Match Selector `json:"match,omitzero"`
	// Interface is the interface that joins, in the spelling of Linux or of the kind.
	Interface topology.Str `json:"interface"`
	Pos       diag.Pos     `json:"-"`
}

// Members are one entry or a list.
type Members []Member

func (m *Members) DecodeYAML(d *strictyaml.Decoder, n *yaml.Node, path string) {
	if n.Kind == yaml.MappingNode {
		var one Member
		d.Decode(n, &one, path)
		*m = Members{one}
		return
	}
	d.Decode(n, (*[]Member)(m), path)
}

// notForwarded has what Linux does with the frames of protocols that are not in ForwardBits.
var notForwarded = map[string]string{
	"stp":   "the bridge runs no STP and always forwards its frames",
	"pause": "bridges never forward pause frames",
}

// linkTypes are the names that a node of a link cannot have, because they select its type.
var linkTypes = []string{string(lab.LinkHost), string(lab.LinkMgmtNet), string(lab.LinkMacvlan)}

// segments checks the segments of the file.
func (r *reader) segments(n *yaml.Node) []lab.Segment {
	var list []Segment
	if !r.decode(n, "segments", &list) {
		return nil
	}
	out := make([]lab.Segment, 0, len(list))
	for i := range list {
		out = append(out, r.segment(&list[i], out))
	}
	return out
}

func (r *reader) wrong(pos diag.Pos, hint, format string, args ...any) {
	r.Diags.Errorf(CodeInvalid, pos, hint, format, args...)
}

// segment checks a segment. before are those before it in the file.
func (r *reader) segment(s *Segment, before []lab.Segment) lab.Segment {
	name := s.Name.Value
	out := lab.Segment{
		Name: name, Pos: s.Name.Pos, SubnetPos: s.Subnet.Pos, Isolate: s.Isolate,
		Forward: r.forward(s.Forward), Members: s.members,
	}
	switch i := slices.IndexFunc(before, func(b lab.Segment) bool { return b.Name == name }); {
	case name == "":
		out.Pos = s.Pos
		r.wrong(s.Pos, `add "name: ..."`, "a segment has no name")
	case slices.Contains(linkTypes, strings.ToLower(name)):
		r.wrong(s.Name.Pos, "choose another name", "a segment cannot be called %q, which is a type of links", name)
	case i >= 0:
		r.wrong(s.Name.Pos, "give each segment a unique name", "segment %q is defined twice (first at line %d)", name, before[i].Pos.Line)
	}
	out.Subnet = r.subnet(s, before)
	out.Gateway = r.gateway(s, out.Subnet)
	if len(s.Members) == 0 {
		r.wrong(out.Pos, "add members: {match: {groups: [host]}, interface: eth1}", "segment %q has no members", name)
	}
	if len(s.Members) > 0 {
		out.Interface = s.Members[0].Interface.Value
	}
	for _, m := range s.Members {
		if m.Interface.Value == "" {
			r.wrong(m.Pos, `add "interface: eth1"`, "members of segment %q have no interface", name)
		}
	}
	if s.Isolate && s.Gateway.Node.Value == "" {
		r.wrong(out.Pos, "add gateway: NODE, or remove isolate", "segment %q is isolated and no node is its gateway: its members would reach nobody", name)
	}
	return out
}

// minHostBits is how many bits of a subnet's addresses number hosts, at least.
const minHostBits = 2

func (r *reader) subnet(s *Segment, before []lab.Segment) netip.Prefix {
	text := s.Subnet
	if text.Value == "" {
		return netip.Prefix{}
	}
	p, err := netip.ParsePrefix(text.Value)
	a := p.Addr()
	switch {
	case err != nil:
		r.wrong(text.Pos, "write it like 10.20.0.0/24", "subnet %q is not a prefix", text.Value)
		return netip.Prefix{}
	case p != p.Masked():
		r.wrong(text.Pos, "write "+p.Masked().String(), "subnet %s has bits of the host part", p)
	case a.BitLen()-p.Bits() < minHostBits:
		r.wrong(text.Pos, fmt.Sprintf("use at most %d bits", a.BitLen()-minHostBits), "subnet %s has no room for a gateway and members", p)
	case a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.Is4In6():
		r.wrong(text.Pos, "write it like 10.20.0.0/24", "subnet %s has no addresses for hosts", p)
	}
	for _, other := range before {
		if other.Subnet.IsValid() && other.Subnet.Overlaps(p) {
			r.wrong(text.Pos, "give each segment a subnet of its own", "subnet %s overlaps %s of segment %q at line %d", p, other.Subnet, other.Name, other.SubnetPos.Line)
		}
	}
	return p.Masked()
}

func (r *reader) gateway(s *Segment, subnet netip.Prefix) lab.Gateway {
	g := &s.Gateway
	out := lab.Gateway{Node: g.Node.Value, Interface: g.Interface.Value, Pos: g.Pos}
	if g.Interface.Value != "" && g.Node.Value == "" {
		r.wrong(g.Interface.Pos, `add "node: ..."`, "the gateway has an interface, but no node")
	}
	if p, err := netip.ParsePrefix(g.Node.Value); err == nil {
		r.wrong(g.Node.Pos, "write "+p.Addr().String(), "the gateway %q is a prefix, not an address", g.Node.Value)
	}
	switch text := g.Address; {
	case text.Value == "":
		if subnet.IsValid() {
			out.Address = subnet.Addr().Next()
		}
	case s.Subnet.Value == "":
		r.wrong(text.Pos, "add a subnet, or remove the address", "the gateway has an address, but the segment has no subnet")
	default:
		a, err := netip.ParseAddr(text.Value)
		if err != nil {
			r.wrong(text.Pos, "write it like 10.20.0.1", "address %q of the gateway is not an address", text.Value)
		} else if subnet.IsValid() && !subnet.Contains(a) {
			r.wrong(text.Pos, "choose one of the subnet", "address %s of the gateway is not in subnet %s", a, subnet)
		} else if subnet.IsValid() && (a == subnet.Addr() || a.Is4() && a == alloc.Broadcast(subnet)) {
			r.wrong(text.Pos, "choose another one of the subnet", "address %s of the gateway stands for the subnet %s itself, not for a host", a, subnet)
		}
		out.Address = a
	}
	return out
}

// forward returns the group forward mask of a list of protocols.
func (r *reader) forward(list topology.List) uint16 {
	if !list.Set {
		return lab.ForwardBits["lldp"]
	}
	mask := uint16(0)
	for _, s := range list.Items {
		bit, ok := lab.ForwardBits[s.Value]
		mask |= bit
		known := slices.Sorted(maps.Keys(lab.ForwardBits))
		switch why := notForwarded[s.Value]; {
		case why != "":
			r.wrong(s.Pos, "remove it", "forward cannot have %s: %s", s.Value, why)
		case !ok:
			hint := "use " + strings.Join(known, ", ")
			if near := strictyaml.Nearest(s.Value, known); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			r.wrong(s.Pos, hint, "forward has the unknown protocol %q", s.Value)
		}
	}
	return mask
}

// members returns the members of the segment. A node joins once with each interface.
func (s *Segment) members(nodes []*lab.Node, diags *diag.List) []lab.Member {
	type end struct{ node, iface string }
	seen := map[end]bool{}
	var out []lab.Member
	for i := range s.Members {
		m := &s.Members[i]
		for _, n := range m.Match.Select(nodes, diags) {
			if key := (end{n.Name, m.Interface.Value}); !seen[key] {
				seen[key] = true
				out = append(out, lab.Member{Node: n, Interface: m.Interface.Value, Pos: m.Interface.Pos})
			}
		}
	}
	if len(out) == 0 {
		diags.Warnf(CodeUnused, s.Name.Pos, "check its match, or remove it", "segment %q matches no node", s.Name.Value)
	}
	return out
}

// Segments are the networks that the policy declares, in the order of the file.
func (p *Policy) Segments() []lab.Segment { return p.segments }
