package render

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// sharedPort is a port of a node behind the lab's shared load balancer.
type sharedPort struct {
	lab.Port
	// shared is the load balancer's port.
	shared uint16
}

// sharedPorts returns the ports of a node behind the shared load balancer, nil for a node
// that is not. Each protocol counts from the start of the node's range.
func (x *index) sharedPorts(n *lab.Node) []sharedPort {
	policy := x.expose(n)
	if policy == nil || !policy.Shared {
		return nil
	}
	var out []sharedPort
	next := map[string]uint16{}
	for _, p := range exposedPorts(policy, n) {
		out = append(out, sharedPort{p, n.SharedPort + next[p.Protocol]})
		next[p.Protocol]++
	}
	return out
}

// sharedService is the load balancer for all nodes whose policy shares it, nil if there are
// none. Kubernetes directs a port to the Pods that have it by its name, which only the node's
// Pod has.
func (b *labBuilder) sharedService() *corev1.Service {
	s := &corev1.Service{
		TypeMeta:   typeMeta("v1", "Service"),
		ObjectMeta: b.index.labMeta(contract.SharedService, contract.ComponentLab),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeLoadBalancer,
			PublishNotReadyAddresses: true, // as a node's own
			IPFamilyPolicy:           new(corev1.IPFamilyPolicyPreferDualStack),
			Selector:                 b.index.nodePods(),
		},
	}
	for _, n := range b.index.lab.Nodes {
		ports := b.index.sharedPorts(n)
		if len(ports) == 0 || !b.canShare(n, ports) {
			continue
		}
		for _, p := range ports {
			suffix := "-" + strings.ToLower(p.Protocol) + "-" + strconv.Itoa(int(p.Container))
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
				Name:       contract.Fit(n.ID, contract.MaxLabel-len(suffix)) + suffix,
				Port:       int32(p.shared),
				TargetPort: intstr.FromString(contract.SharedPortName(p.Protocol, p.shared)),
				Protocol:   corev1.Protocol(p.Protocol),
			})
			if protocol := n.AppProtocols[lab.PortName(p.Port)]; protocol != "" {
				s.Spec.Ports[len(s.Spec.Ports)-1].AppProtocol = &protocol
			}
		}
	}
	if len(s.Spec.Ports) == 0 {
		return nil
	}
	return s
}

// canShare rejects a node whose ports do not fit its range, and one in the worker's network
// namespace, where a named port would be taken on the worker.
func (b *labBuilder) canShare(n *lab.Node, ports []sharedPort) bool {
	count := map[string]int{}
	for _, p := range ports {
		count[p.Protocol]++
		if count[p.Protocol] > lab.SharedPorts {
			b.diags.Errorf(CodeExposeShared, n.Pos, "name fewer ports in expose.ports, or expose the node without shared",
				"node %q has more than %d %s ports behind the shared load balancer", n.Name, lab.SharedPorts, p.Protocol)
			return false
		}
	}
	if b.index.nodes[b.index.podOf[n.Name].Nodes[0]].NetworkMode == lab.NetworkHost {
		b.diags.Errorf(CodeExposeShared, n.Pos, "expose the node without shared",
			"node %q uses the worker's network namespace and cannot be behind the shared load balancer", n.Name)
		return false
	}
	return true
}

// From how many load balancers or nodes with node ports on a lab has a warning, and how many
// node ports a cluster has by default.
const (
	manyExposed = 50
	nodePorts   = 2768
)

// warnExposed warns of what many Services cost outside the lab.
func (b *labBuilder) warnExposed() {
	count := map[string]int{}
	ports, shared := 0, 0
	for _, n := range b.index.lab.Nodes {
		policy := b.index.expose(n)
		switch {
		case policy == nil || b.index.skipPod(b.index.podOf[n.Name]):
		case policy.Shared:
			shared += len(exposedPorts(policy, n))
		default:
			count[policy.Type]++
			if policy.Type == "NodePort" {
				ports += len(exposedPorts(policy, n))
			}
		}
	}
	pos := diag.Pos{File: file(b.index.lab)}
	const hint = "use one load balancer for the lab (expose: {type: LoadBalancer, shared: true}), or expose fewer nodes"
	if n := count["LoadBalancer"]; n > manyExposed {
		b.diags.Warnf(CodeExposeMany, pos, hint,
			"%d nodes have a load balancer each; most clouds charge for each and limit their number", n)
	}
	if n := count["NodePort"]; n > manyExposed {
		b.diags.Warnf(CodeExposeMany, pos, hint,
			"%d nodes take %d node ports; a cluster has %d by default, and each adds rules to every worker", n, ports, nodePorts)
	}
	if shared > nodePorts {
		b.diags.Warnf(CodeExposeMany, pos, "name fewer ports in expose.ports",
			"the shared load balancer has %d ports; most need a node port for each, and a cluster has %d by default", shared, nodePorts)
	}
}
