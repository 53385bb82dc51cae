package render

import (
	"encoding/json"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/apicheck"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// gracePeriod is how long a device has to end by itself, in seconds. Most ignore
// SIGTERM and would make every change wait.
const gracePeriod = 10

// deploymentBuilder builds the Deployment of one Pod.
type deploymentBuilder struct {
	index  *index
	pod    *podView
	staged staged
	// volumes collects the volumes that the containers mount.
	volumes volumeSet
	diags   *diag.List
}

// deployment returns a Deployment with one replica. The old Pod no longer exists before the
// new one starts, since both would claim the same addresses.
func (b *deploymentBuilder) deployment() *appsv1.Deployment {
	meta := b.index.nodeMeta(b.pod.name, b.pod.name, b.pod.primary)
	describe(meta.Labels, b.pod.primary)
	labels := b.pod.podLabels()
	maps.Copy(labels, meta.Labels) // c9s' own count
	delete(labels, managedBy)      // by which objects are pruned, and no Pod is
	b.index.recommend(meta.Labels, contract.LabelValue(b.pod.primary.Kind))
	meta.Annotations[contract.AnnotationSource] = b.index.lab.Source
	meta.Annotations[contract.AnnotationPlanner] = b.index.planner(b.pod.primary)
	// The proxies of service meshes would take the connections of devices and of
	// probes: Istio is kept out by this label, Linkerd by its annotation.
	labels["sidecar.istio.io/inject"] = "false"
	template := metav1.ObjectMeta{
		Labels: labels,
		// Nothing that an edit elsewhere in the file changes may be here: it would
		// restart the device.
		Annotations: map[string]string{
			contract.AnnotationStaged:     b.staged.digest,
			contract.AnnotationContainers: b.pod.containerNames(),
			"linkerd.io/inject":           "disabled",
		},
	}
	meta.Annotations[contract.AnnotationNodeName] = strings.Join(b.pod.nodes, ",")
	if mode := b.pod.linkApplyMode(); mode != "" && mode != linkApplyLive {
		meta.Annotations[contract.AnnotationLinkApply] = mode
	}
	if text := b.pod.topologyLabels(); text != "" {
		meta.Annotations[contract.AnnotationTopologyLabels] = text
	}
	if text := b.pod.logins(); text != "" {
		meta.Annotations[contract.AnnotationLogins] = text
	}
	return &appsv1.Deployment{
		TypeMeta:   typeMeta("apps/v1", "Deployment"),
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:                new(int32(1)),
			RevisionHistoryLimit:    new(int32(1)),
			ProgressDeadlineSeconds: new(b.pod.deadlineSeconds()),
			Strategy:                appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector:                &metav1.LabelSelector{MatchLabels: b.index.selector(b.pod.name)},
			Template:                corev1.PodTemplateSpec{ObjectMeta: template, Spec: b.podSpec()},
		},
	}
}

// linkApplyLive is the mode of a Deployment without the annotation.
const linkApplyLive = "live"

func (v *podView) linkApplyMode() string {
	if v.primary.LinkApplyMode != "" {
		return v.primary.LinkApplyMode
	}
	return v.members[0].plan.LinkApplyMode
}

// containerNames are the containers of each node.
func (v *podView) containerNames() string {
	names := map[string][]string{}
	for _, m := range v.members {
		names[m.node.Name] = append([]string{}, m.containers...) // never null
	}
	return mustJSON(names)
}

// mustJSON writes maps of strings, which cannot fail.
func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// topologyLabels are the labels that the user gave the nodes, by node.
func (v *podView) topologyLabels() string {
	labels := map[string]map[string]string{}
	for _, m := range v.members {
		if len(m.node.Labels) > 0 {
			labels[m.node.Name] = m.node.Labels
		}
	}
	if len(labels) == 0 {
		return ""
	}
	return mustJSON(labels)
}

// logins are those that differ from the nodes' kinds, by node.
func (v *podView) logins() string {
	logins := map[string]contract.Login{}
	for _, m := range v.members {
		usual := lab.Credentials{}
		if k, ok := kinds.Builtin().Lookup(m.node.Kind); ok {
			usual = k.Credentials
		}
		if own := m.node.Credentials; own != usual && own != (lab.Credentials{}) {
			logins[m.node.Name] = contract.Login{Username: own.Username, Password: own.Password != usual.Password}
		}
	}
	if len(logins) == 0 {
		return ""
	}
	return mustJSON(logins)
}

func (b *deploymentBuilder) podSpec() corev1.PodSpec {
	spec := corev1.PodSpec{
		Hostname:                      b.pod.name,
		Subdomain:                     contract.LabService,
		ServiceAccountName:            contract.NodeServiceAccount,
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(int64(gracePeriod)),
	}
	b.schedule(&spec)
	b.namespaces(&spec)
	b.helperVolumes()
	switch {
	case !b.pod.hostNetwork:
		spec.InitContainers = []corev1.Container{b.wireContainer()}
	case !b.staged.empty:
		spec.InitContainers = []corev1.Container{b.prepareContainer()}
	}
	for _, m := range b.pod.members {
		for i, name := range m.containers {
			spec.Containers = append(spec.Containers, b.deviceContainer(m, i, b.staged.programs[name]))
		}
	}
	if len(spec.Containers) == 0 {
		spec.Containers = []corev1.Container{b.idleContainer()}
	}
	spec.Volumes = b.volumes.list
	return spec
}

// namespaces carries pid-mode, network-mode host and dns.
func (b *deploymentBuilder) namespaces(spec *corev1.PodSpec) {
	for _, m := range b.pod.members {
		b.pidMode(m.node, spec)
	}
	if b.pod.hostNetwork {
		spec.HostNetwork = true
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	dns := b.pod.primary.DNS
	if dns == nil || b.pod.primary.RootNamespace {
		return
	}
	switch {
	case b.pod.hostNetwork && len(dns.Servers) > 0:
		spec.DNSPolicy = corev1.DNSNone
		spec.DNSConfig = dnsConfig(dns, true)
	case len(dns.Servers) == 0 && len(dns.Search)+len(dns.Options) > 0:
		spec.DNSConfig = dnsConfig(dns, false)
	}
}

func dnsConfig(dns *lab.DNS, servers bool) *corev1.PodDNSConfig {
	out := &corev1.PodDNSConfig{Searches: dns.Search}
	if servers {
		out.Nameservers = dns.Servers
	}
	for _, option := range dns.Options {
		name, value, has := strings.Cut(option, ":")
		o := corev1.PodDNSConfigOption{Name: name}
		if has {
			o.Value = &value
		}
		out.Options = append(out.Options, o)
	}
	return out
}

// pidMode joins the worker's processes or those of the Pod's other containers.
func (b *deploymentBuilder) pidMode(n *lab.Node, spec *corev1.PodSpec) {
	target, other := strings.CutPrefix(n.PIDMode, "container:")
	switch {
	case n.PIDMode == "":
	case n.PIDMode == "host":
		spec.HostPID = true
	case other && b.pod.sharesPod(target):
		spec.ShareProcessNamespace = new(true)
	case other:
		b.diags.Errorf(apicheck.CodePIDMode, n.Pos, "give the node network-mode container:"+target+" as well, so that both share a Pod",
			"node %q requests the process namespace of %q, which is in another Pod", n.Name, target)
	default:
		b.diags.Errorf(apicheck.CodePIDMode, n.Pos, "use host or container:<node>", "node %q has pid-mode %q", n.Name, n.PIDMode)
	}
}

func (v *podView) sharesPod(name string) bool {
	for _, m := range v.members {
		if m.node.Name == name || m.node.ID == name || m.node.LongName == name {
			return true
		}
	}
	return false
}
