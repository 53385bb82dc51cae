package render

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// mgmtInterface is the management interface of every kind that has one.
const mgmtInterface = "eth0"

// defaultMgmtMTU is Docker's, in bytes.
const defaultMgmtMTU = 1500

// maxInterfaceName is Linux' IFNAMSIZ without the final zero.
const maxInterfaceName = 15

func (v *podView) linksName() string { return contract.LinksConfigMap(v.name) }

// linksBuilder builds the Pod's connectivity: links.json.
type linksBuilder struct {
	index *index
	pod   *podView
	diags *diag.List
}

// linksConfigMap is the Pod's connectivity. It may change under a running Pod.
func (b *podBuilder) linksConfigMap() *corev1.ConfigMap {
	data := map[string]string{contract.LinksFile: b.index.links[b.pod.name]}
	for _, m := range b.pod.members {
		if b.pod.countsInterfaces(m) {
			data[interfaceCountKey(m.node.ID)] = m.plan.Containers[0].Env[interfaceCount]
		}
	}
	return &corev1.ConfigMap{
		TypeMeta:   typeMeta("v1", "ConfigMap"),
		ObjectMeta: b.index.nodeMeta(b.pod.linksName(), b.pod.name, b.pod.primary),
		Data:       data,
	}
}

func (b *linksBuilder) document() *contract.Links {
	doc := &contract.Links{
		Version:  contract.LinksVersion,
		Lab:      b.index.lab.Name,
		Pod:      b.pod.name,
		Encrypt:  b.index.lab.EncryptWires,
		Hostname: b.pod.primary.Hostname,
		Mgmt:     b.mgmt(),
		Sysctls:  b.sysctls(),
	}
	used := map[string]*lab.Endpoint{}
	bridges := map[string]*lab.Node{}
	for _, m := range b.pod.members {
		if m.node.RootNamespace {
			b.checkBridge(m.node, bridges)
			doc.Bridges = append(doc.Bridges, contract.Bridge{Name: bridgeInterface(m.node.Name), GroupForwardMask: forwardMask(m.node)})
		}
		for _, ep := range orderedEndpoints(m) {
			b.checkInterface(ep, used, doc)
			doc.Interfaces = append(doc.Interfaces, b.iface(m, ep))
		}
		if b.pod.primary.OnMgmtNetwork() && !m.node.RootNamespace {
			b.checkPorts(m.node)
		}
	}
	return doc
}

func (b *linksBuilder) mgmt() *contract.Mgmt {
	n := b.pod.primary
	if !n.OnMgmtNetwork() {
		return nil
	}
	net := b.index.lab.Mgmt
	out := &contract.Mgmt{
		Interface:      mgmtInterface,
		MAC:            b.index.mgmtMAC(n),
		MTU:            orDefault(net.MTU, defaultMgmtMTU),
		ExternalAccess: net.ExternalAccess,
		External:       n.Policy.External,
		DenyTo:         n.Policy.DenyTo,
		DenyFrom:       n.Policy.DenyFrom,
	}
	if n.MgmtIPv4.IsValid() {
		out.IPv4 = netip.PrefixFrom(n.MgmtIPv4, net.IPv4.Subnet.Bits())
		out.GatewayV4 = net.IPv4.Gateway
	}
	if n.MgmtIPv6.IsValid() {
		out.IPv6 = netip.PrefixFrom(n.MgmtIPv6, net.IPv6.Subnet.Bits())
		out.GatewayV6 = net.IPv6.Gateway
	}
	return out
}

// mgmtMAC is the kind's where it fixes one, else a locally administered address
// made of the names of lab and node.
func (x *index) mgmtMAC(n *lab.Node) string {
	if p := x.plans[n.Name]; p != nil && len(p.Containers) > 0 && p.Containers[0].MgmtMAC != "" {
		return p.Containers[0].MgmtMAC
	}
	sum := sha256.Sum256([]byte(x.lab.Name + "\x00" + n.Name))
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4])
}

// checkBridge rejects two bridges of one name in a network namespace, and names that the
// namespace has already.
func (b *linksBuilder) checkBridge(n *lab.Node, bridges map[string]*lab.Node) {
	name := bridgeInterface(n.Name)
	if reservedByLinux(name) || strings.HasPrefix(name, "c9s") {
		b.diags.Errorf(CodeInterfaceReserved, n.Pos, "choose another name", "node %q would become a bridge %s, and that name is reserved", n.Name, name)
	}
	if other := bridges[name]; other != nil {
		b.diags.Errorf(CodeInterfaceTwice, n.Pos, "rename one of the two",
			"nodes %q and %q would both become the bridge %s in one network namespace (the other one is at %s)", other.Name, n.Name, name, other.Pos)
	}
	bridges[name] = n
}

// forwardMask is the group forward mask of a bridge node. By default it lets LLDP pass, as
// containerlab has it on the bridge of its management network.
func forwardMask(n *lab.Node) uint16 {
	if n.GroupForwardMask != nil {
		return *n.GroupForwardMask
	}
	return lab.ForwardBits["lldp"]
}

// bridgeInterface is the name of a bridge node's bridge, legal for Linux. As in
// containerlab, "|" and what follows only tell nodes apart ("br0|r1", "br0|r2").
func bridgeInterface(name string) string {
	if before, _, found := strings.Cut(name, "|"); found && before != "" {
		name = before
	}
	legal := strings.Map(func(r rune) rune {
		if r <= ' ' || r == '/' || r == ':' || r > '~' {
			return '-'
		}
		return r
	}, name)
	if legal == name && len(name) <= maxInterfaceName && name != "." && name != ".." {
		return name
	}
	return legal[:min(len(legal), 8)] + "-" + contract.ShortDigest(name)[:6]
}

// orderedEndpoints are a node's link ends in the order of the plan's interfaces;
// what the plan does not know comes last, as the lab has it.
func orderedEndpoints(m member) []*lab.Endpoint {
	if len(m.plan.Interfaces) == 0 {
		return m.node.Endpoints
	}
	rank := make(map[string]int, len(m.plan.Interfaces))
	for i, iface := range m.plan.Interfaces {
		rank[iface.Name] = i - len(m.plan.Interfaces)
	}
	out := slices.Clone(m.node.Endpoints)
	slices.SortStableFunc(out, func(a, b *lab.Endpoint) int { return rank[a.Interface] - rank[b.Interface] })
	return out
}

// reservedByLinux reports whether no interface can be created with a name: lo exists in every
// network namespace, and all and default are folders of settings in /proc/sys/net/ipv4/conf
// (net/ipv4/devinet.c, sysctl_dev_name_is_allowed).
func reservedByLinux(name string) bool {
	return name == "lo" || name == "all" || name == "default"
}

// checkInterface rejects names that the Pod has already. The nodes of a Pod share
// one network namespace.
func (b *linksBuilder) checkInterface(ep *lab.Endpoint, used map[string]*lab.Endpoint, doc *contract.Links) {
	name := ep.Interface
	if reservedByLinux(name) || name == "c9s0" || name == mgmtInterface && doc.Mgmt != nil {
		b.diags.Errorf(CodeInterfaceReserved, ep.Pos, "choose another interface name",
			"node %q: the interface name %s is reserved", ep.Node, name)
		return
	}
	if before := used[name]; before != nil {
		b.diags.Errorf(CodeInterfaceTwice, ep.Pos, "use different interface names for nodes that share a network namespace",
			"interface %s of node %q is in one Pod with interface %s of node %q (%s)", name, ep.Node, name, before.Node, before.Pos)
		return
	}
	used[name] = ep
}

func (b *linksBuilder) iface(m member, ep *lab.Endpoint) contract.Interface {
	link := b.index.lab.Links[ep.Link]
	out := contract.Interface{
		Name: ep.Interface, Alias: ep.Alias, Node: ep.Node, MAC: ep.MAC, MTU: cmp.Or(ep.MTU, link.MTU), IPv4: ep.IPv4, IPv6: ep.IPv6,
	}
	if known := planned(m.plan, ep.Interface); known != nil {
		if known.Alias != "" {
			out.Alias = known.Alias
		}
		if known.MAC != "" {
			out.MAC = known.MAC
		}
	}
	if ep.Bridge || m.node.RootNamespace {
		out.Bridge, out.Isolated = bridgeInterface(m.node.Name), ep.Isolated
	}
	b.farEnd(&out, link, ep)
	return out
}

func planned(p *plan.Plan, name string) *plan.Interface {
	for i := range p.Interfaces {
		if p.Interfaces[i].Name == name {
			return &p.Interfaces[i]
		}
	}
	return nil
}

// farEnd describes the other end of a link.
func (b *linksBuilder) farEnd(out *contract.Interface, link *lab.Link, ep *lab.Endpoint) {
	switch link.Type {
	case lab.LinkHost:
		out.Host = &contract.Host{Interface: link.HostInterface}
	case lab.LinkMgmtNet:
		out.MgmtNet = &contract.MgmtNet{HostInterface: link.HostInterface}
	case lab.LinkMacvlan:
		out.Macvlan = &contract.Macvlan{Parent: link.HostInterface, Mode: link.MacvlanMode}
	case lab.LinkVXLAN, lab.LinkVXLANStitch:
		out.VXLAN = link.VXLAN
		out.Stitch = link.Type == lab.LinkVXLANStitch
	case lab.LinkDummy:
		out.Dummy = true
	default:
		b.wireOrLocal(out, link, ep)
	}
}

func (b *linksBuilder) wireOrLocal(out *contract.Interface, link *lab.Link, ep *lab.Endpoint) {
	if len(link.Endpoints) != 2 {
		b.diags.Add(diag.Diagnostic{Code: CodeLinkEnds, Severity: diag.Error, Pos: link.Pos,
			Message: fmt.Sprintf("the %s link has %d ends", link.Type, len(link.Endpoints)), Hint: "report this to c9s"})
		return
	}
	far, impairment := link.Endpoints[1], impaired(link.Impairment, false)
	if far.Node == ep.Node && far.Interface == ep.Interface {
		far, impairment = link.Endpoints[0], impaired(link.Impairment, true)
	}
	if pod := b.index.podOf[far.Node]; pod != nil && pod.Name != b.pod.name {
		out.Wire = &contract.Wire{
			ID: link.WireID, PeerPod: pod.Name, PeerNode: far.Node, PeerInterface: far.Interface,
			Datapath: cmp.Or(link.Datapath, "auto"), Impairment: impairment,
		}
		return
	}
	out.Local = &contract.Local{ID: link.WireID, PeerNode: far.Node, PeerInterface: far.Interface, Impairment: impairment}
}

// impaired is what an end does to the frames that it sends.
func impaired(both *lab.LinkImpairment, back bool) *lab.Impairment {
	if both == nil {
		return nil
	}
	one := both.AToB
	if back {
		one = both.BToA
	}
	if one == (lab.Impairment{}) {
		return nil
	}
	return &one
}

// needsHostProc reports whether a link leads into the worker's network namespace.
func (v *podView) needsHostProc(l *lab.Lab) bool {
	for _, m := range v.members {
		for _, ep := range m.node.Endpoints {
			if t := l.Links[ep.Link].Type; t == lab.LinkHost || t == lab.LinkMacvlan {
				return true
			}
		}
	}
	return false
}

// sysctls are those of the namespaces that the Pod's containers share: the
// sidecar sets them, so that the kubelet need not allow them as unsafe.
func (b *linksBuilder) sysctls() map[string]string {
	var out map[string]string
	for _, m := range b.pod.members {
		for _, c := range m.plan.Containers {
			for _, name := range slices.Sorted(maps.Keys(c.Sysctls)) {
				text := c.Sysctls[name]
				if !namespaced(name) {
					b.diags.Errorf(CodeSysctl, m.node.Pos, "set it on the workers, or remove it",
						"node %q: the sysctl %s applies to the whole worker", m.node.Name, name)
					continue
				}
				if before, ok := out[name]; ok && before != text {
					b.diags.Errorf(CodeSysctlConflict, m.node.Pos, "give them the same value",
						"node %q requests the sysctl %s=%s, but its Pod already sets %s", m.node.Name, name, text, before)
				}
				if out == nil {
					out = map[string]string{}
				}
				out[name] = text
			}
		}
	}
	return out
}

// namespaced reports whether a sysctl belongs to a network, IPC or UTS namespace
// (Docker takes the same ones).
func namespaced(name string) bool {
	for _, prefix := range []string{"net.", "kernel.shm", "kernel.msg", "fs.mqueue."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "kernel.sem" || name == "kernel.domainname"
}
