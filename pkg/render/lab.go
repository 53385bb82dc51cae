package render

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
)

const networkPolicyName = "c9s-nodes"

// labBuilder builds the objects that a lab has once.
type labBuilder struct {
	index *index
	diags *diag.List
}

// labObjects returns them in their order.
func (b *labBuilder) labObjects() []manifest.Object {
	var out []manifest.Object
	add := func(group string, objs ...apiObject) {
		for _, o := range objs {
			out = append(out, manifest.Object{Group: group, Object: o, Source: b.index.lab.Source, Pos: diag.Pos{File: file(b.index.lab)}, Secret: manifest.IsSecret(o)})
		}
	}
	if ns := b.namespace(); ns != nil {
		add(manifest.GroupNamespace, ns)
	}
	add(manifest.GroupLab, b.serviceAccount(contract.NodeServiceAccount, contract.ComponentLab))
	if b.index.opts.WireKey != nil {
		add(manifest.GroupLabSecrets, b.wireKey())
	}
	if ca := b.authority(); ca != nil {
		add(manifest.GroupLabSecrets, b.caSecret(ca))
	}
	add(manifest.GroupLab, b.directory())
	for _, cm := range b.topology() {
		add(manifest.GroupLab, cm)
	}
	for _, cm := range b.allocations() {
		add(manifest.GroupLab, cm)
	}
	add(manifest.GroupLab, b.service())
	if s := b.sharedService(); s != nil {
		add(manifest.GroupLab, s)
	}
	b.warnExposed()
	b.warnLabels()
	add(manifest.GroupLab, b.networkPolicy())
	if !b.index.opts.NoController {
		add(manifest.GroupController, b.controller()...)
		add(manifest.GroupController, b.expiry()...)
	}
	return out
}

// namespace is nil for the namespace "default", which is not c9s' to make. Its
// Pods need the privileged Pod Security level: the sidecar makes interfaces.
func (b *labBuilder) namespace() *corev1.Namespace {
	if b.index.lab.Namespace == metav1.NamespaceDefault {
		return nil
	}
	meta := b.index.labMeta(b.index.lab.Namespace, contract.ComponentLab)
	meta.Namespace = ""
	for _, mode := range []string{"enforce", "audit", "warn"} {
		meta.Labels["pod-security.kubernetes.io/"+mode] = "privileged"
	}
	return &corev1.Namespace{TypeMeta: typeMeta("v1", "Namespace"), ObjectMeta: meta}
}

// serviceAccount is one whose token is mounted only where a Pod asks for it.
func (b *labBuilder) serviceAccount(name, component string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:                     typeMeta("v1", "ServiceAccount"),
		ObjectMeta:                   b.index.labMeta(name, component),
		AutomountServiceAccountToken: new(false),
	}
}

func (b *labBuilder) wireKey() *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   typeMeta("v1", "Secret"),
		ObjectMeta: b.index.labMeta(contract.WireKeySecret, contract.ComponentLab),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{contract.WireKeyKey: b.index.opts.WireKey},
	}
}

// authority is the lab's certificate authority: the external one of
// settings.certificate-authority, or else the one that the caller made.
func (b *labBuilder) authority() *Certificate {
	if ca := b.index.lab.CA; ca != nil && ca.Cert != nil && ca.Key != nil {
		return &Certificate{Cert: b.index.lab.Files[ca.Cert.Digest], Key: b.index.lab.Files[ca.Key.Digest]}
	}
	return b.index.opts.CA
}

func (b *labBuilder) caSecret(ca *Certificate) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   typeMeta("v1", "Secret"),
		ObjectMeta: b.index.labMeta(contract.CASecret, contract.ComponentLab),
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: ca.Cert, corev1.TLSPrivateKeyKey: ca.Key},
	}
}

// service gives every Pod of the lab a name: <pod>.<service>. It includes Pods that are not
// ready, because a wire has to be up before its Pods are. One address for each suffices,
// and every further one doubles what the cluster writes to keep them.
func (b *labBuilder) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   typeMeta("v1", "Service"),
		ObjectMeta: b.index.labMeta(contract.LabService, contract.ComponentLab),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			IPFamilyPolicy:           new(corev1.IPFamilyPolicySingleStack),
			Selector:                 b.index.nodePods(),
		},
	}
}

// nodePods selects the Pods of all nodes.
func (x *index) nodePods() map[string]string {
	return map[string]string{contract.LabelLab: x.labLabel, contract.LabelComponent: contract.ComponentNode}
}

// networkPolicy lets the lab's own Pods reach each other in every way, and
// everybody else all but the sidecar's ports. A policy cannot deny, so the ports
// around the sidecar's are allowed as ranges. The kubelet's probes reach a Pod
// from its own worker, which every implementation lets through.
func (b *labBuilder) networkPolicy() *networkingv1.NetworkPolicy {
	const first, last = 1, 65535
	udp := [][2]int32{{first, contract.WirePort - 1}, {contract.MgmtPort + 1, contract.VXLANPort - 1}, {contract.VXLANPort + 1, last}}
	tcp := [][2]int32{{first, contract.StatusPort - 1}, {contract.StatusPort + 1, last}}
	var open []networkingv1.NetworkPolicyPort
	open = append(open, portRanges(corev1.ProtocolTCP, tcp)...)
	open = append(open, portRanges(corev1.ProtocolUDP, udp)...)
	open = append(open, portRanges(corev1.ProtocolSCTP, [][2]int32{{first, last}})...)
	// Cilium before 1.17 takes a range for its first port: what is published is named.
	var published [][]lab.Port
	for _, n := range b.index.lab.Nodes {
		if policy := b.index.expose(n); policy != nil {
			published = append(published, exposedPorts(policy, n))
		}
	}
	for _, port := range uniquePorts(published...) {
		open = append(open, networkingv1.NetworkPolicyPort{Protocol: new(corev1.Protocol(port.Protocol)), Port: new(intstr.FromInt32(int32(port.Container)))})
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta:   typeMeta("networking.k8s.io/v1", "NetworkPolicy"),
		ObjectMeta: b.index.labMeta(networkPolicyName, contract.ComponentLab),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: b.index.nodePods()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: []networkingv1.NetworkPolicyPeer{{
					PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{contract.LabelLab: b.index.labLabel}},
				}}},
				{Ports: open},
			},
		},
	}
}

func portRanges(protocol corev1.Protocol, ranges [][2]int32) []networkingv1.NetworkPolicyPort {
	out := make([]networkingv1.NetworkPolicyPort, len(ranges))
	for i, r := range ranges {
		from := intstr.FromInt32(r[0])
		out[i] = networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &from, EndPort: new(r[1])}
	}
	return out
}
