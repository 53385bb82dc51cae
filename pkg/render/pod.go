package render

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// podView is one Pod of the lab, read-only once it is made.
type podView struct {
	name string
	// nodes are the names of the Pod's nodes, the primary first.
	nodes   []string
	members []member
	primary *lab.Node
	// hostNetwork means that the Pod is in the worker's network namespace and has
	// no wire.
	hostNetwork bool
	// persistent means that the node folders are on a PersistentVolumeClaim.
	persistent bool
	// shared are the named volumes on the lab's shared claim.
	shared map[string]bool
}

// member is one node of the Pod.
type member struct {
	node *lab.Node
	plan *plan.Plan
	// containers are the Kubernetes names of plan.Containers.
	containers []string
}

func newPodView(x *index, pod *lab.Pod) *podView {
	v := &podView{name: pod.Name, nodes: pod.Nodes, primary: x.nodes[pod.Nodes[0]], shared: x.shared}
	taken := map[string]bool{prepareName: true, wireName: true}
	for _, name := range pod.Nodes {
		m := member{node: x.nodes[name], plan: x.plans[name]}
		for _, c := range m.plan.Containers {
			m.containers = append(m.containers, containerName(m.node.ID, c.Name, taken))
		}
		v.members = append(v.members, m)
	}
	v.hostNetwork = v.primary.NetworkMode == lab.NetworkHost
	v.persistent = v.needsClaim()
	return v
}

// containerName returns the node's ID, with the slot for a chassis. A node with the
// name of a helper container gets "-device".
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

// podBuilder builds the objects of one Pod.
type podBuilder struct {
	index *index
	pod   *podView
	diags *diag.List
}

// render returns the Pod's objects in their order.
func (b *podBuilder) render() []manifest.Object {
	if b.pod.hostNetwork {
		b.checkHostNetwork()
	}
	staged := newStager(b.index, b.pod, b.diags).stage()
	var out []manifest.Object
	add := func(group string, source *lab.Node, objs ...apiObject) {
		for _, o := range objs {
			out = append(out, manifest.Object{
				Group: group, Object: o, Source: source.Source(), Pos: source.Pos, Node: source.Name, Secret: manifest.IsSecret(o),
			})
		}
	}
	nodes, secrets := manifest.NodeGroup(b.pod.name), manifest.SecretGroup(b.pod.name)
	for _, s := range staged.secrets {
		add(secrets, b.pod.primary, s)
	}
	for _, m := range b.pod.members {
		if cert, ok := b.index.opts.Certificates[m.node.Name]; ok {
			add(secrets, m.node, b.certificateSecret(m.node, cert))
		}
	}
	for _, cm := range staged.configMaps {
		add(nodes, b.pod.primary, cm)
	}
	for _, cm := range staged.shared {
		out = append(out, manifest.Object{Group: manifest.FileGroup(cm.Name), Object: cm, Source: b.index.lab.Source, Pos: b.pod.primary.Pos, Node: b.pod.primary.Name})
	}
	if !b.pod.hostNetwork {
		add(nodes, b.pod.primary, b.linksConfigMap())
	}
	if b.pod.persistent {
		add(nodes, b.pod.primary, b.claim())
	}
	for _, m := range b.pod.members {
		for _, s := range b.services(m.node) {
			add(nodes, m.node, s)
		}
	}
	add(nodes, b.pod.primary, (&deploymentBuilder{index: b.index, pod: b.pod, staged: staged, diags: b.diags}).deployment())
	for i := range out {
		out[i].Comments = b.pod.comments(out[i].Kind())
	}
	return out
}

// deploymentComments explain to readers of the YAML what would surprise them, by key.
var deploymentComments = map[string]string{
	"spec.strategy":                     "The old Pod ends first: both have the same addresses.",
	"spec.template.spec.initContainers": "The sidecar writes the files and makes the interfaces; then the devices start.",
	"spec.template.spec.subdomain":      "Peers find the Pod as <hostname>.<subdomain>.",
	"spec.template.spec.tolerations":    "Leave a lost worker after 30 seconds, and not after five minutes.",
}

// comments returns the comments on an object of the Pod.
func (v *podView) comments(kind string) map[string]string {
	if kind != "Deployment" {
		return nil
	}
	if len(v.podLabels()) == 0 {
		return deploymentComments
	}
	out := maps.Clone(deploymentComments)
	out["spec.template.metadata.labels"] = "Labels of the topology are here too, for kubectl -l."
	return out
}

// checkHostNetwork rejects links and waits for other nodes: both need a wire, and a
// Pod in the worker's network namespace has none.
func (b *podBuilder) checkHostNetwork() {
	const hint = "remove network-mode host, or link the other node to host:<interface>"
	for _, m := range b.pod.members {
		if len(m.node.Endpoints) > 0 {
			b.diags.Errorf(CodeHostNetwork, m.node.Pos, hint,
				"node %q uses the worker's network namespace (network-mode host) but has links", m.node.Name)
		}
		for _, stage := range m.node.Stages {
			if len(stage.WaitFor) > 0 {
				b.diags.Errorf(CodeHostNetwork, m.node.Pos, hint,
					"node %q uses the worker's network namespace (network-mode host) but waits for other nodes", m.node.Name)
				break
			}
		}
	}
}

// certificateSecret returns the Secret with the node's issued certificate.
func (b *podBuilder) certificateSecret(n *lab.Node, cert Certificate) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   typeMeta("v1", "Secret"),
		ObjectMeta: b.index.nodeMeta(contract.CertificateSecret(n.ID), b.pod.name, n),
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			"ca.crt":                cert.CA,
			corev1.TLSCertKey:       cert.Cert,
			corev1.TLSPrivateKeyKey: cert.Key,
		},
	}
}
