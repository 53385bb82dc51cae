package fabric

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/natural"
	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// maxSegments is the largest number of an Ethernet segment, which is that of the bundle on its VTEPs:
// SR Linux has lag1 to lag1000.
const maxSegments = 1000

// bond is the interface of a multihomed host.
const bond = "bond0"

// Segment is an Ethernet segment, seen from one VTEP: the links of one host to several VTEPs,
// which are one LACP bundle of the host.
type Segment struct {
	ID    int    `json:"id"`
	Host  string `json:"host"`
	Ports []Port `json:"ports"`
}

// SystemMAC is the LACP system of all VTEPs of the segment.
func (s *Segment) SystemMAC() string {
	return fmt.Sprintf("02:c9:00:%02x:%02x:%02x", s.ID>>16&0xff, s.ID>>8&0xff, s.ID&0xff)
}

// ESI is the identifier of the segment, of type 3: the system and the number.
func (s *Segment) ESI() string {
	return fmt.Sprintf("03:%s:%02x:%02x:%02x", s.SystemMAC(), s.ID>>16&0xff, s.ID>>8&0xff, s.ID&0xff)
}

// Dotted and Quads are a MAC address as 02c9.0000.0001, and an identifier as 0302:c900:...
func (s *Segment) Dotted() string { return inFours(s.SystemMAC(), ".") }
func (s *Segment) Quads() string  { return inFours(s.ESI(), ":") }

func inFours(text, between string) string {
	digits := strings.ReplaceAll(text, ":", "")
	var out []string
	for i := 0; i < len(digits); i += 4 {
		out = append(out, digits[i:i+4])
	}
	return strings.Join(out, between)
}

// multihomed is a host of multihoming.
type multihomed struct {
	id      int
	service string
	vteps   map[string]bool
	// first is the first of its VTEPs, in the order of their names.
	first *Node
}

func (l *loader) multihoming() {
	m := l.file.Multihoming
	if len(l.file.Services) == 0 {
		l.wrong(m.Pos, "add services with hosts, or remove multihoming", "multihomed hosts need a service")
	}
	if m.Pos.Line > 0 && !m.Hosts.Set() {
		l.wrong(m.Pos, "add hosts: {groups: [server]}", "multihoming has no hosts")
	}
}

// segments numbers the Ethernet segments, one for each multihomed host.
func (s *stage) segments() {
	m := s.file.Multihoming
	if m == nil {
		return
	}
	s.plan.multihoming = true
	hosts := m.Hosts.Select(s.lab.Nodes, s.diags)
	slices.SortFunc(hosts, func(a, b *lab.Node) int { return natural.Compare(a.Name, b.Name) })
	if len(hosts) == 0 {
		s.diags.Errorf(CodeNoMatch, m.Hosts.Pos, "check its match", "hosts of multihoming matches no node of the topology")
		return
	}
	var claims []alloc.Claim[uint32]
	for _, n := range hosts {
		claims = append(claims, alloc.Claim[uint32]{Owner: n.Name, Pos: m.Hosts.Pos})
	}
	pool := alloc.Numbers("Ethernet segments", 1, maxSegments)
	pool.Order = alloc.Lowest
	for name, id := range alloc.Take(s.ledger, poolSegment, pool, claims, alloc.NumberForm, s.diags) {
		s.multihomed[name] = &multihomed{id: int(id), vteps: map[string]bool{}}
	}
}

// join adds a port to the segment of a multihomed host.
func (s *stage) join(h *multihomed, n *Node, local *LocalService, p Port) {
	if h.service != "" && h.service != local.Name {
		s.diags.Errorf(CodeTwoServices, s.file.Multihoming.Hosts.Pos, "select the host in one of the services only",
			"multihomed node %q has links in service %q and in service %q, and its bundle is in one VLAN", p.Peer, h.service, local.Name)
	}
	if h.first == nil {
		h.first = n
	}
	if h.first.kind.template != n.kind.template && !h.vteps[n.Name] {
		s.diags.Errorf(CodeUnsupported, s.file.Multihoming.Hosts.Pos, "link the host to VTEPs of one kind",
			"multihomed node %q has links to %q of kind %s and to %q of kind %s, whose LACP keys differ", p.Peer, h.first.Name, h.first.Kind, n.Name, n.Kind)
	}
	h.service, h.vteps[n.Name] = local.Name, true
	at := slices.IndexFunc(local.Segments, func(o *Segment) bool { return o.ID == h.id })
	if at < 0 {
		at = len(local.Segments)
		local.Segments = append(local.Segments, &Segment{ID: h.id, Host: p.Peer})
	}
	local.Segments[at].Ports = append(local.Segments[at].Ports, p)
}

// checkSegments reports hosts that do not have links to several VTEPs of one service.
func (s *stage) checkSegments() {
	m := s.file.Multihoming
	if m == nil {
		return
	}
	for _, n := range s.lab.Nodes {
		h := s.multihomed[n.Name]
		switch {
		case h == nil:
		case s.nodes[n.Name] != nil:
			s.diags.Errorf(CodeInvalid, m.Hosts.Pos, "select hosts", "multihomed node %q is a member of the fabric", n.Name)
		case len(h.vteps) == 0:
			s.diags.Errorf(CodeNoMatch, m.Hosts.Pos, "link it to two VTEPs, and select it in hosts of a service that both have", "multihomed node %q has no link to a VTEP of a service", n.Name)
		case len(h.vteps) == 1:
			s.diags.Errorf(CodeInvalid, m.Hosts.Pos, "link it to another VTEP that has the service, or exclude it from multihoming", "multihomed node %q has links to one VTEP of service %q only", n.Name, h.service)
		case n.RootNamespace || n.Kind == "bridge" || n.Kind == "ovs-bridge":
			s.diags.Errorf(CodeInvalid, m.Hosts.Pos, "exclude it from multihoming", "node %q of kind %s cannot bundle its links by LACP", n.Name, n.Kind)
		}
	}
}

// bundle makes the links of a multihomed Linux host one bundle, which has the host's address.
func (s *stage) bundle(ends []hostEnd) {
	n := ends[0].node
	if n.Kind != "linux" || n.RootNamespace {
		return
	}
	var script strings.Builder
	fmt.Fprintf(&script, "set -e\nip link show %[1]s >/dev/null 2>&1 || ip link add %[1]s type bond mode 802.3ad miimon 100 lacp_rate fast xmit_hash_policy layer3+4\n", bond)
	fmt.Fprintf(&script, "ip link set %s mtu \"$(cat /sys/class/net/%s/mtu)\"\n", bond, ends[0].Interface)
	for _, h := range ends {
		fmt.Fprintf(&script, "ip link set %[1]s down\nip link set %[1]s master %[2]s\nip link set %[1]s up\n", h.Interface, bond)
	}
	fmt.Fprintf(&script, "ip link set %s up\n", bond)
	var v4, v6 []netip.Prefix
	for _, h := range ends {
		if h.IPv4.IsValid() {
			v4 = append(v4, h.IPv4)
		}
		if h.IPv6.IsValid() {
			v6 = append(v6, h.IPv6)
		}
		h.IPv4, h.IPv6 = netip.Prefix{}, netip.Prefix{}
	}
	if len(v4) > 1 || len(v6) > 1 {
		s.diags.Errorf(CodeAddress, ends[0].Pos, "set the address of one of the links", "several links of multihomed node %q have addresses, and its bundle has one", n.Name)
	}
	for _, p := range slices.Concat(v4, v6) {
		fmt.Fprintf(&script, "ip addr replace %s dev %s\n", p, bond)
	}
	n.Exec = append([]lab.Exec{{Argv: []string{"sh", "-c", script.String()}, Raw: "fabric: bundle of the links to VTEPs"}}, n.Exec...)
}

// The following are for templates.

// Segments are the Ethernet segments of the node.
func (n *Node) Segments() []*Segment {
	var out []*Segment
	for _, s := range n.Services {
		out = append(out, s.Segments...)
	}
	return out
}

// Multihoming reports whether the fabric has Ethernet segments, on whatever VTEPs.
func (n *Node) Multihoming() bool { return n.plan.multihoming }
