package compile

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// vxlanPort is containerlab's default UDP port for VXLAN links.
const vxlanPort = 14789

// compileLinks resolves the links in the order of the file, and then those of the segments.
func (c *compiler) compileLinks() {
	for i := range c.f.Topology.Links.Items {
		c.addLink(&c.f.Topology.Links.Items[i])
	}
	c.joinSegments()
	c.checkEndpoints()
}

// addLink compiles a link. It returns nil for a link with an error.
func (c *compiler) addLink(l *topology.Link) *lab.Link {
	out, ok := c.compileLink(l)
	if !ok {
		return nil
	}
	for _, e := range out.Endpoints {
		e.Link = len(c.lab.Links)
	}
	c.lab.Links = append(c.lab.Links, out)
	return out
}

func (c *compiler) compileLink(l *topology.Link) (*lab.Link, bool) {
	out := &lab.Link{
		Type:   lab.LinkType(l.Type.Value),
		Pos:    l.Pos,
		MTU:    c.linkMTU(l.MTU),
		Vars:   l.Vars.Value,
		Labels: map[string]string{},
	}
	for _, kv := range l.Labels.Items {
		out.Labels[kv.Key] = kv.Value
	}
	if len(out.Labels) == 0 {
		out.Labels = nil
	}
	if l.Brief() {
		return out, c.briefLink(l, out)
	}
	switch out.Type {
	case lab.LinkVeth, lab.LinkVethStitch:
		c.defaultMTU(out)
		return out, c.twoEnds(l, out)
	default:
		return out, c.oneEnd(l, out)
	}
}

func (c *compiler) defaultMTU(out *lab.Link) {
	if out.MTU == 0 {
		out.MTU = lab.DefaultLinkMTU
	}
}

// briefLink resolves two "node:interface" strings; host, mgmt-net and macvlan in
// place of a node make a link of that type.
func (c *compiler) briefLink(l *topology.Link, out *lab.Link) bool {
	c.defaultMTU(out)
	if !c.haveTwo(l) {
		return false
	}
	c.briefAddresses(l)
	for i, e := range l.Endpoints {
		switch t := lab.LinkType(strings.ToLower(strings.TrimSpace(e.Node.Value))); t {
		case lab.LinkHost, lab.LinkMgmtNet, lab.LinkMacvlan:
			if n := c.nodes[e.Node.Value]; n != nil && n.Kind != hostKind {
				c.diags.Warnf(CodeBadLink, e.Node.Pos, "rename the node", "%q in a brief link selects the link type %s, as in containerlab; node %q is not part of it", e.Node.Value, t, n.Name)
			}
			out.Type = t
			out.HostInterface = e.Interface.Value
			if t == lab.LinkMacvlan {
				out.MTU = l.MTU.Value
				out.MacvlanMode = "bridge"
			}
			return c.outsideLink(out, l.Endpoints[1-i])
		}
	}
	out.Type = lab.LinkVeth
	return c.twoEnds(l, out)
}

func (c *compiler) haveTwo(l *topology.Link) bool {
	if len(l.Endpoints) != 2 {
		c.diags.Errorf(CodeBadLink, l.Pos, "write two endpoints; to connect more nodes, use a node of kind bridge", "the link has %s, not two", diag.Count(len(l.Endpoints), "endpoint"))
		return false
	}
	return l.Endpoints[0].Node.Value != "" && l.Endpoints[1].Node.Value != ""
}

// briefAddresses gives the link's ipv4 and ipv6 lists to the ends, in order.
func (c *compiler) briefAddresses(l *topology.Link) {
	for _, list := range []struct {
		l    topology.List
		v4   bool
		name string
	}{{l.IPv4, true, "ipv4"}, {l.IPv6, false, "ipv6"}} {
		if len(list.l.Items) > len(l.Endpoints) {
			c.diags.Errorf(CodeBadLink, list.l.Pos, "write at most one for each end", "the link has %d %s addresses but two ends", len(list.l.Items), list.name)
			continue
		}
		for i, s := range list.l.Items {
			s.Value = strings.TrimSpace(s.Value)
			if list.v4 {
				l.Endpoints[i].IPv4 = s
			} else {
				l.Endpoints[i].IPv6 = s
			}
		}
	}
}

// twoEnds resolves a veth link. An end on a node of kind host, or on containerlab's
// own nodes host and mgmt-net, makes it a link of that type; brief links of kinds that stitch become veth-stitch.
func (c *compiler) twoEnds(l *topology.Link, out *lab.Link) bool {
	if !l.Brief() && !c.haveTwo(l) {
		return false
	}
	a, b := c.nodes[l.Endpoints[0].Node.Value], c.nodes[l.Endpoints[1].Node.Value]
	for i, n := range []*node{a, b} {
		if t := lab.LinkType(l.Endpoints[i].Node.Value); n == nil && (t == lab.LinkHost || t == lab.LinkMgmtNet) && c.nodes[l.Endpoints[1-i].Node.Value] != nil {
			out.Type, out.HostInterface = t, l.Endpoints[i].Interface.Value
			return c.outsideLink(out, l.Endpoints[1-i])
		}
		if n != nil && n.Kind == hostKind {
			out.Type = lab.LinkHost
			out.HostInterface = l.Endpoints[i].Interface.Value
			other := l.Endpoints[1-i]
			if o := c.nodes[other.Node.Value]; o != nil && o.Kind == hostKind {
				c.diags.Errorf(CodeBadLink, l.Pos, "connect a node", "both ends of the link are on the host")
				return false
			}
			return c.outsideLink(out, other)
		}
	}
	if l.Brief() && a != nil && b != nil && a.kind != nil && b.kind != nil && (a.kind.StitchLinks || b.kind.StitchLinks) {
		out.Type = lab.LinkVethStitch
	}
	ok := true
	for _, e := range l.Endpoints {
		end, good := c.endpoint(e)
		ok = ok && good
		if end != nil {
			out.Endpoints = append(out.Endpoints, end)
		}
	}
	if len(out.Endpoints) == 2 && out.Endpoints[0].MAC != "" && out.Endpoints[0].MAC == out.Endpoints[1].MAC {
		c.diags.Errorf(CodeBadAddress, l.Endpoints[1].MAC.Pos, "give each end its own", "both ends of the link have the MAC address %s", out.Endpoints[0].MAC)
		ok = false
	}
	return c.checkIPv6MTU(l, out) && ok && len(out.Endpoints) == 2
}

// oneEnd resolves the extended types with one end in the lab.
func (c *compiler) oneEnd(l *topology.Link, out *lab.Link) bool {
	if l.Endpoint == nil {
		c.diags.Errorf(topology.CodeMissingField, l.Pos, "add \"endpoint:\" with node and interface", "the %s link has no endpoint", out.Type)
		return false
	}
	out.HostInterface = l.HostInterface.Value
	ok := true
	switch out.Type {
	case lab.LinkHost, lab.LinkMgmtNet, lab.LinkMacvlan:
		if out.HostInterface == "" {
			c.diags.Errorf(topology.CodeMissingField, l.Pos, "add \"host-interface: NAME\"", "the %s link has no host-interface", out.Type)
			ok = false
		}
		if out.Type == lab.LinkMacvlan {
			out.MacvlanMode = strings.ToLower(l.Mode.Value)
			if out.MacvlanMode == "" {
				out.MacvlanMode = "bridge"
			}
			if !slices.Contains([]string{"bridge", "vepa", "private", "passthru", "source"}, out.MacvlanMode) {
				c.diags.Errorf(topology.CodeBadValue, l.Mode.Pos, "use bridge, vepa, private, passthru or source", "unknown macvlan mode %q", l.Mode.Value)
				ok = false
			}
		} else {
			c.defaultMTU(out)
		}
	case lab.LinkVXLAN, lab.LinkVXLANStitch:
		ok = c.vxlan(l, out)
	case lab.LinkDummy:
		c.defaultMTU(out)
	}
	return c.outsideLink(out, *l.Endpoint) && ok
}

// vxlan reads the tunnel of a vxlan or vxlan-stitch link.
func (c *compiler) vxlan(l *topology.Link, out *lab.Link) bool {
	ok := true
	if l.Remote.Value == "" {
		c.diags.Errorf(topology.CodeMissingField, l.Pos, "add \"remote: ADDRESS\"", "the %s link has no remote", out.Type)
		ok = false
	}
	if !l.VNI.Set || l.VNI.Value < 1 || l.VNI.Value > 1<<24-1 {
		pos := l.VNI.Pos
		if !l.VNI.Set {
			pos = l.Pos
		}
		c.diags.Errorf(CodeOutOfRange, pos, "add \"vni: NUMBER\" from 1 to 16777215", "the %s link has no valid vni", out.Type)
		ok = false
	}
	port := l.DstPort
	if !port.Set && l.OldUDPPort.Set {
		c.diags.Warnf(CodeDeprecated, l.OldUDPPort.Pos, "write dst-port", "udp-port is the old name of dst-port")
		port = l.OldUDPPort
	}
	out.VXLAN = &lab.VXLAN{
		Remote: l.Remote.Value, VNI: l.VNI.Value, Parent: l.ParentInterface.Value,
		DstPort: c.within(port, 1, 65535, "dst-port", ""), SrcPort: c.within(l.SrcPort, 1, 65535, "src-port", ""),
	}
	if out.VXLAN.DstPort == 0 {
		out.VXLAN.DstPort = vxlanPort
	}
	return ok
}

// outsideLink gives a link its only end in the lab, and reports what the worker
// has to have for it.
func (c *compiler) outsideLink(out *lab.Link, e topology.Endpoint) bool {
	end, ok := c.endpoint(e)
	if end == nil {
		return false
	}
	out.Endpoints = []*lab.Endpoint{end}
	if n := c.nodes[end.Node]; n != nil && n.Kind == hostKind {
		c.diags.Errorf(CodeBadLink, e.Pos, "name a node that has a Pod", "the %s link starts at node %q, which is the host itself", out.Type, end.Node)
		return false
	}
	if out.HostInterface == "" && out.VXLAN == nil {
		return ok
	}
	if out.HostInterface != "" && !isWord(out.HostInterface) {
		c.diags.Errorf(kinds.CodeInterfaceName, e.Pos, "use printable characters without spaces", "%q is not a valid name for an interface of the worker", out.HostInterface)
		return false
	}
	switch out.Type {
	case lab.LinkMacvlan:
		c.diags.Warnf(CodeWorkerInterface, e.Pos, "place the node on a worker that has it (nodeSelector in c9s.yaml)", "%s:%s requires interface %q on the worker where it is scheduled", end.Node, e.Interface.Value, out.HostInterface)
	case lab.LinkHost:
		c.diags.Warnf(CodeWorkerInterface, e.Pos, "place the node on the intended worker (nodeSelector in c9s.yaml)", "%s:%s creates interface %q on the worker where it is scheduled", end.Node, e.Interface.Value, out.HostInterface)
	case lab.LinkVXLAN, lab.LinkVXLANStitch:
		if p := out.VXLAN.Parent; p != "" {
			c.diags.Warnf(CodeWorkerInterface, e.Pos, "none needed: the worker's routes select the path", "the tunnel of %s:%s uses the Pod's own interface; parent-interface %q has no effect in a cluster", end.Node, e.Interface.Value, p)
		}
	}
	return ok
}

// linkMTU is the MTU of a link, 0 for the default. The kernel takes no less than 68 bytes
// for an interface with IPv4 (RFC 791).
func (c *compiler) linkMTU(v topology.Int) int {
	if v.Value == 0 {
		return 0
	}
	return c.within(v, 68, 65535, "mtu", "bytes")
}

// reservedInterface returns why a node cannot have an interface of a name, or "".
func reservedInterface(n *node, name string) string {
	switch {
	case name == "lo":
		return "it is the loopback interface"
	case n.RootNamespace && (name == n.Name || name == n.ID):
		return "it is the bridge itself"
	case n.RootNamespace && strings.HasPrefix(name, "c9s"):
		return "the names that begin with c9s are the sidecar's"
	}
	return ""
}

// endpoint resolves one end: its node, Linux interface name, MAC and addresses.
// It returns an end for counting even after an error, unless its node is unknown.
// noLink is an Endpoint's Link where the link was rejected.
const noLink = -1

func (c *compiler) endpoint(e topology.Endpoint) (*lab.Endpoint, bool) {
	if e.Node.Value == "" || e.Interface.Value == "" {
		return nil, false
	}
	n := c.nodes[e.Node.Value]
	if n == nil {
		c.diags.Errorf(CodeUnknownNode, e.Node.Pos, c.nodeHint(e.Node.Value), "endpoint %s:%s names a node that the topology does not have", e.Node.Value, e.Interface.Value)
		return nil, false
	}
	ok := true
	end := &lab.Endpoint{Node: n.Name, Interface: e.Interface.Value, Link: noLink, Vars: e.Vars.Value, Pos: e.Pos, Bridge: n.RootNamespace && n.Kind != hostKind}
	if !isPrintable(e.Interface.Value) {
		c.diags.Errorf(kinds.CodeInterfaceName, e.Interface.Pos, "use printable characters", "node %q: %q is not a valid interface name", n.Name, e.Interface.Value)
		n.badInterface = true
		ok = false
	} else if n.kind != nil {
		linux, alias, err := n.kind.MapInterface(e.Interface.Value, n.Node)
		if err != nil {
			c.diags.Errorf(kinds.CodeInterfaceName, e.Interface.Pos, "use an interface name of the kind", "node %q: %v", n.Name, err)
			n.badInterface = true
			ok = false
		} else {
			end.Interface, end.Alias = linux, alias
		}
	}
	if ok && n.Kind != hostKind {
		if reason := reservedInterface(n, end.Interface); reason != "" {
			c.diags.Errorf(kinds.CodeInterfaceName, e.Interface.Pos, "choose another name", "node %q cannot have an interface %q: %s", n.Name, end.Interface, reason)
			n.badInterface = true
			ok = false
		}
	}
	if e.MAC.Value != "" {
		mac, err := net.ParseMAC(e.MAC.Value)
		switch {
		case err != nil || len(mac) != 6:
			c.diags.Errorf(CodeBadAddress, e.MAC.Pos, "write it like 02:00:00:00:00:01", "MAC address %q is malformed", e.MAC.Value)
			ok = false
		case mac[0]&1 != 0:
			c.diags.Errorf(CodeBadAddress, e.MAC.Pos, "choose one whose first byte is even", "MAC address %s is a group address", mac)
			ok = false
		case !slices.ContainsFunc(mac, func(b byte) bool { return b != 0 }):
			c.diags.Errorf(CodeBadAddress, e.MAC.Pos, "write it like 02:00:00:00:00:01", "MAC address %s is no address: Linux rejects it", mac)
			ok = false
		default:
			end.MAC = mac.String()
		}
	}
	var good bool
	if end.IPv4, good = c.endAddress(e.IPv4, true); !good {
		ok = false
	}
	if end.IPv6, good = c.endAddress(e.IPv6, false); !good {
		ok = false
	}
	n.Endpoints = append(n.Endpoints, end)
	return end, ok
}

func (c *compiler) endAddress(s topology.Str, v4 bool) (netip.Prefix, bool) {
	if s.Value == "" {
		return netip.Prefix{}, true
	}
	p, ok := c.prefix(s, "address", v4)
	if a := p.Addr(); ok && a.Is6() && (a.IsUnspecified() || a.IsMulticast() || a.IsLoopback()) {
		c.diags.Errorf(CodeBadAddress, s.Pos, "choose the address of a host", "Linux gives no interface the address %s", a)
		return netip.Prefix{}, false
	}
	return p, ok
}

// minIPv6MTU is the smallest MTU of an interface with IPv6 (RFC 8200).
const minIPv6MTU = 1280

// checkIPv6MTU rejects IPv6 addresses on links whose MTU is too small for IPv6.
func (c *compiler) checkIPv6MTU(l *topology.Link, out *lab.Link) bool {
	if out.MTU == 0 || out.MTU >= minIPv6MTU || !slices.ContainsFunc(out.Endpoints, func(e *lab.Endpoint) bool { return e.IPv6.IsValid() }) {
		return true
	}
	c.diags.Errorf(CodeOutOfRange, l.MTU.Pos, fmt.Sprintf("write %d or more, or remove the IPv6 address", minIPv6MTU),
		"mtu %d of a link with an IPv6 address is less than %d, and Linux has no IPv6 there", out.MTU, minIPv6MTU)
	return false
}

// checkEndpoints rejects an interface that two links use, and host interfaces
// that two nodes make; then it lets each kind check its names.
func (c *compiler) checkEndpoints() {
	type ifname struct{ node, name string }
	used := map[ifname]diag.Pos{}
	for _, l := range c.lab.Links {
		for _, e := range l.Endpoints {
			key := ifname{e.Node, e.Interface}
			if other, dup := used[key]; dup {
				c.diags.Errorf(CodeDuplicateEnd, e.Pos, "give each link a different interface", "interface %s of node %q is used by two links (also at %s)", e.Written(), e.Node, other)
				continue
			}
			used[key] = e.Pos
		}
	}
	hostNames := map[string]diag.Pos{}
	for _, l := range c.lab.Links {
		if (l.Type != lab.LinkHost && l.Type != lab.LinkMgmtNet) || l.HostInterface == "" {
			continue
		}
		if other, dup := hostNames[l.HostInterface]; dup {
			c.diags.Errorf(CodeDuplicateEnd, l.Pos, "give each its own name", "two links create the host interface %q (the other one is at %s)", l.HostInterface, other)
			continue
		}
		hostNames[l.HostInterface] = l.Pos
	}
	for _, n := range c.order {
		if n.NetworkMode == lab.NetworkHost && len(n.Endpoints) > 0 {
			c.diags.Errorf(CodeNetworkMode, n.Endpoints[0].Pos, "remove network-mode host, or the links", "node %q uses the worker's network and cannot have links", n.Name)
		}
		if n.kind != nil && !n.badInterface {
			c.diags.Append(n.kind.CheckInterfaces(n.Node))
		}
	}
}

// wireOwner names a wire for its allocation: both ends, in name order.
func wireOwner(l *lab.Link) string {
	a := fmt.Sprintf("%s:%s", l.Endpoints[0].Node, l.Endpoints[0].Interface)
	b := fmt.Sprintf("%s:%s", l.Endpoints[1].Node, l.Endpoints[1].Interface)
	if b < a {
		a, b = b, a
	}
	return a + " " + b
}
