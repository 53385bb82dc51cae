package render

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// podRenderer renders the objects of one Pod.
type podRenderer struct {
	*renderer
	pod     *lab.Pod
	members []member
	primary *lab.Node
	// hostNetwork tells that the Pod is in the worker's network namespace and
	// has no wire.
	hostNetwork bool
	// persistent tells that the node folders are on a PersistentVolumeClaim.
	persistent bool
	volumes    volumeSet
	diags      *diag.List
}

// member is one node of the Pod.
type member struct {
	node *lab.Node
	plan *plan.Plan
	// containers are the Kubernetes names of plan.Containers.
	containers []string
}

func newPodRenderer(r *renderer, pod *lab.Pod, diags *diag.List) *podRenderer {
	p := &podRenderer{renderer: r, pod: pod, primary: r.nodes[pod.Nodes[0]], diags: diags}
	taken := map[string]bool{prepareName: true, wireName: true}
	for _, name := range pod.Nodes {
		m := member{node: r.nodes[name], plan: r.plans[name]}
		for _, c := range m.plan.Containers {
			m.containers = append(m.containers, containerName(m.node.ID, c.Name, taken))
		}
		p.members = append(p.members, m)
	}
	p.hostNetwork = p.primary.NetworkMode == lab.NetworkHost
	p.persistent = p.needsClaim()
	return p
}

// containerName is the node's ID, with the slot for a chassis. A node that is
// called like a helper container gets "-device".
func containerName(id, slot string, taken map[string]bool) string {
	name := id
	if slot != "" {
		name = contract.Fit(strings.TrimRight(id+"-"+contract.Slug(slot, 20), "-"), contract.MaxLabel)
	}
	if taken[name] {
		name = contract.Fit(name+"-device", contract.MaxLabel)
	}
	taken[name] = true
	return name
}

// render returns the Pod's objects in their order.
func (p *podRenderer) render() []manifest.Object {
	if p.hostNetwork {
		p.checkHostNetwork()
	}
	staged := p.stage()
	var out []manifest.Object
	add := func(group string, source *lab.Node, objs ...apiObject) {
		for _, o := range objs {
			out = append(out, manifest.Object{Group: group, Object: o, Source: source.Source(), Secret: manifest.IsSecret(o)})
		}
	}
	nodes, secrets := manifest.NodeGroup(p.pod.Name), manifest.SecretGroup(p.pod.Name)
	for _, s := range staged.secrets {
		add(secrets, p.primary, s)
	}
	for _, m := range p.members {
		if cert, ok := p.opts.Certificates[m.node.Name]; ok {
			add(secrets, m.node, p.certificateSecret(m.node, cert))
		}
	}
	for _, cm := range staged.configMaps {
		add(nodes, p.primary, cm)
	}
	if !p.hostNetwork {
		add(nodes, p.primary, p.linksConfigMap())
	}
	if p.persistent {
		add(nodes, p.primary, p.claim())
	}
	for _, m := range p.members {
		for _, s := range p.services(m.node) {
			add(nodes, m.node, s)
		}
	}
	add(nodes, p.primary, p.deployment(staged))
	return out
}

// checkHostNetwork refuses what needs a wire, which a Pod in the worker's
// network namespace cannot have.
func (p *podRenderer) checkHostNetwork() {
	const hint = "remove network-mode host, or link the other node to host:<interface>"
	for _, m := range p.members {
		if len(m.node.Endpoints) > 0 {
			p.diags.Errorf(CodeHostNetwork, m.node.Pos, hint,
				"node %q is in the worker's network namespace (network-mode host) and has links", m.node.Name)
		}
		for _, stage := range m.node.Stages {
			if len(stage.WaitFor) > 0 {
				p.diags.Errorf(CodeHostNetwork, m.node.Pos, hint,
					"node %q is in the worker's network namespace (network-mode host) and waits for other nodes", m.node.Name)
				break
			}
		}
	}
}

// certificateSecret is the node's issued certificate.
func (p *podRenderer) certificateSecret(n *lab.Node, cert Certificate) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   typeMeta("v1", "Secret"),
		ObjectMeta: p.nodeMeta(contract.CertificateSecret(n.ID), p.pod.Name, n),
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			"ca.crt":                cert.CA,
			corev1.TLSCertKey:       cert.Cert,
			corev1.TLSPrivateKeyKey: cert.Key,
		},
	}
}
