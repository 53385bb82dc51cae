package render

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// defaultPorts are where network devices are managed: SSH, Telnet, HTTP(S),
// NETCONF, serial console over TCP, VNC, eAPI, HTTP and gNMI of several vendors, NVUE,
// SNMP.
var defaultPorts = func() []lab.Port {
	ports := []lab.Port{{Container: 161, Protocol: "UDP"}}
	for _, port := range []uint16{22, 23, 80, 443, 830, 5000, 5900, 6030, 8080, 8765, 9339, 9340, 9559, 32767, 50051, 57400} {
		ports = append(ports, lab.Port{Container: port, Protocol: "TCP"})
	}
	return ports
}()

// services are a node's Services for people: its own and one an alias, where the policy or
// the topology's ports ask for one.
func (b *podBuilder) services(n *lab.Node) []*corev1.Service {
	s := b.exposeService(n)
	if s == nil {
		return nil // none, or the lab's shared one
	}
	out := []*corev1.Service{s}
	for _, name := range b.index.aliases[n.Name] {
		out = append(out, b.headless(n, name))
	}
	return out
}

// headless is a name for the Pod's own address.
func (b *podBuilder) headless(n *lab.Node, name string) *corev1.Service {
	s := b.service(n, name)
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.PublishNotReadyAddresses = true
	return s
}

func (b *podBuilder) service(n *lab.Node, name string) *corev1.Service {
	meta := b.index.nodeMeta(name, b.pod.name, n)
	describe(meta.Labels, n)
	return &corev1.Service{
		TypeMeta:   typeMeta("v1", "Service"),
		ObjectMeta: meta,
		Spec: corev1.ServiceSpec{
			Selector:       b.index.selector(b.pod.name),
			IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack),
		},
	}
}

// expose is what the node asks for: by its policy, or by ports of the topology. It is nil
// for a node that asks for nothing and for one that has no management address to lead to.
func (x *index) expose(n *lab.Node) *lab.Expose {
	pod := x.podOf[n.Name]
	if pod == nil || n.RootNamespace {
		return nil
	}
	primary := x.nodes[pod.Nodes[0]]
	if !primary.OnMgmtNetwork() && primary.NetworkMode != lab.NetworkHost {
		return nil
	}
	policy := n.Policy.Expose
	if policy == nil && len(n.Ports) > 0 {
		policy = &lab.Expose{Ports: []lab.Port{}} // those of the topology
	}
	if policy == nil || policy.Type == "None" || len(exposedPorts(policy, n)) == 0 {
		return nil
	}
	return policy
}

// exposeService is the node's Service for people.
func (b *podBuilder) exposeService(n *lab.Node) *corev1.Service {
	policy := b.index.expose(n)
	if policy == nil || policy.Shared {
		return nil
	}
	s := b.service(n, n.ID)
	// The Pod is ready when its links are up, and a device with a link down is
	// just the one that people want to log in to.
	s.Spec.PublishNotReadyAddresses = true
	switch policy.Type {
	case "", "ClusterIP":
		s.Spec.Type = corev1.ServiceTypeClusterIP
	case "LoadBalancer":
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		if policy.UseMgmtAddress {
			s.Spec.LoadBalancerIP = mgmtAddress(n)
		}
	case "NodePort":
		s.Spec.Type = corev1.ServiceTypeNodePort
	case "Headless":
		s.Spec.Type = corev1.ServiceTypeClusterIP
		s.Spec.ClusterIP = corev1.ClusterIPNone
	default:
		b.diags.Errorf(CodeExposeType, n.Pos, "use ClusterIP, LoadBalancer, NodePort, Headless or None",
			"node %q: the policy's expose type %q is unknown", n.Name, policy.Type)
		return nil
	}
	for _, port := range exposedPorts(policy, n) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name:       lab.PortName(port),
			Port:       int32(port.Container),
			TargetPort: intstr.FromInt32(int32(port.Container)),
			Protocol:   corev1.Protocol(port.Protocol),
		})
		if protocol := n.AppProtocols[lab.PortName(port)]; protocol != "" {
			s.Spec.Ports[len(s.Spec.Ports)-1].AppProtocol = &protocol
		}
	}
	return s
}

func mgmtAddress(n *lab.Node) string {
	switch {
	case n.MgmtIPv4.IsValid():
		return n.MgmtIPv4.String()
	case n.MgmtIPv6.IsValid():
		return n.MgmtIPv6.String()
	}
	return ""
}

// exposedPorts are the policy's ports, or the default ones if it has no list, and those of
// the topology, sorted by protocol and number, each once.
func exposedPorts(policy *lab.Expose, n *lab.Node) []lab.Port {
	base := policy.Ports
	if base == nil {
		base = defaultPorts
	}
	return uniquePorts(base, n.Ports)
}

func uniquePorts(lists ...[]lab.Port) []lab.Port {
	var out []lab.Port
	for _, port := range slices.Concat(lists...) {
		out = append(out, lab.Port{Container: port.Container, Protocol: strings.ToUpper(cmp.Or(port.Protocol, "TCP"))})
	}
	slices.SortFunc(out, func(a, b lab.Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Container, b.Container))
	})
	return slices.Compact(out)
}

// checkPorts rejects published ports that the sidecar has itself.
func (b *linksBuilder) checkPorts(n *lab.Node) {
	policy := b.index.expose(n)
	if policy == nil {
		return
	}
	for _, port := range exposedPorts(policy, n) {
		sidecar := port.Protocol == "UDP" && (port.Container == contract.WirePort || port.Container == contract.MgmtPort || port.Container == contract.VXLANPort) ||
			port.Protocol == "TCP" && port.Container == contract.StatusPort
		if sidecar {
			b.diags.Errorf(CodeReservedPort, n.Pos, "let the device listen on another port",
				"node %q publishes port %d/%s, which c9s uses on the Pod address", n.Name, port.Container, strings.ToLower(port.Protocol))
		}
	}
}

// aliasServices returns the Service names of every node's aliases. It warns of an
// alias that cannot have a Service.
func aliasServices(l *lab.Lab, diags *diag.List) map[string][]string {
	taken := map[string]string{}
	for _, n := range l.Nodes {
		taken[n.ID] = n.Name
	}
	out := map[string][]string{}
	for _, n := range l.Nodes {
		for _, alias := range n.Aliases {
			name := strings.ToLower(alias)
			if name == n.ID {
				continue
			}
			const still = "it still resolves inside the lab"
			if strings.HasPrefix(name, "c9s-") {
				diags.Warnf(CodeAlias, n.Pos, still, "alias %q of node %q gets no Service: names that begin with c9s- are the lab's own", alias, n.Name)
				continue
			}
			if owner, ok := taken[name]; ok {
				diags.Warnf(CodeAlias, n.Pos, still, "alias %q of node %q gets no Service: node %q has that name", alias, n.Name, owner)
				continue
			}
			if why := validation.IsDNS1035Label(name); len(why) > 0 {
				diags.Warnf(CodeAlias, n.Pos, still, "alias %q of node %q gets no Service: it is not a DNS label", alias, n.Name)
				continue
			}
			taken[name] = n.Name
			out[n.Name] = append(out[n.Name], name)
		}
	}
	return out
}
