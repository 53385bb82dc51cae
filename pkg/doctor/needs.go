package doctor

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/render"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

// Needs are what a lab asks of a cluster; those of Any where none is named.
type Needs struct {
	// Lab is the lab's name as written, "" for any lab.
	Lab string
	// Pods are the Pods with nodes, as templates.
	Pods []Pod
	// Kinds are the kinds of objects that are written.
	Kinds []string
	// Rules are the rights that the lab gives away, which the user must have.
	Rules []rbacv1.PolicyRule
	// Claims are what is asked of storage.
	Claims []Claim
	// Balanced are the nodes that are exposed by a load balancer.
	Balanced []string
	// Features are those of the kernel that some link needs, and the nodes.
	Features map[probe.Feature][]string
}

// Pod is one Pod of a lab.
type Pod struct {
	// Nodes are as the topology writes them.
	Nodes []string
	Spec  corev1.PodSpec
	KVM   bool
	TUN   bool
}

// Claim is a PersistentVolumeClaim; Class is nil for the default one.
type Claim struct {
	Name  string
	Class *string
}

// Any are the needs of the smallest lab: one Pod with a sidecar, placed as render
// places Pods.
func Any() Needs {
	return Needs{
		Pods: []Pod{{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelOSStable: "linux"},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "type", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"virtual-kubelet"}},
				}}},
			}}},
			Volumes: []corev1.Volume{{Name: "near", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: contract.NearFolder, Type: new(corev1.HostPathDirectoryOrCreate)}}}},
		}}},
		Kinds: []string{"ConfigMap", "Deployment", "NetworkPolicy", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount"},
	}
}

// Of reads a rendered lab's needs from its objects.
func Of(out *render.Output) Needs {
	n := Needs{Lab: out.Lab, Features: map[probe.Feature][]string{}}
	for i := range out.Objects {
		object := out.Objects[i].Object
		n.Kinds = append(n.Kinds, object.GetObjectKind().GroupVersionKind().Kind)
		switch o := object.(type) {
		case *appsv1.Deployment:
			if o.Labels[contract.LabelComponent] == contract.ComponentNode {
				pod := podOf(o)
				n.Pods = append(n.Pods, pod)
				if pod.KVM {
					n.Features[probe.Flower] = append(n.Features[probe.Flower], pod.Nodes...)
				}
			}
		case *rbacv1.Role:
			n.Rules = append(n.Rules, o.Rules...)
		case *corev1.PersistentVolumeClaim:
			n.Claims = append(n.Claims, Claim{o.Name, o.Spec.StorageClassName})
		case *corev1.Service:
			if o.Spec.Type == corev1.ServiceTypeLoadBalancer {
				n.Balanced = append(n.Balanced, cmp.Or(o.Annotations[contract.AnnotationNodeName], o.Name))
			}
		case *corev1.ConfigMap:
			n.links(o)
		}
	}
	slices.Sort(n.Kinds)
	n.Kinds = slices.DeleteFunc(slices.Compact(n.Kinds), func(kind string) bool { return kind == "Namespace" })
	return n
}

func podOf(d *appsv1.Deployment) Pod {
	p := Pod{Nodes: strings.Split(d.Annotations[contract.AnnotationNodeName], ","), Spec: d.Spec.Template.Spec}
	for _, v := range p.Spec.Volumes {
		if v.HostPath == nil {
			continue
		}
		p.KVM = p.KVM || v.HostPath.Path == "/dev/kvm"
		p.TUN = p.TUN || v.HostPath.Path == "/dev/net/tun"
	}
	// A virtual machine's interfaces are taps.
	p.TUN = p.TUN || p.KVM
	return p
}

// links notes what the interfaces of a Pod need beyond veth.
func (n *Needs) links(cm *corev1.ConfigMap) {
	text, ok := cm.Data[contract.LinksFile]
	var doc contract.Links
	if !ok || json.Unmarshal([]byte(text), &doc) != nil {
		return
	}
	add := func(f probe.Feature, node string) {
		if !slices.Contains(n.Features[f], node) {
			n.Features[f] = append(n.Features[f], node)
		}
	}
	for _, i := range doc.Interfaces {
		switch {
		case i.Macvlan != nil:
			add(probe.Macvlan, i.Node)
		case i.Stitch:
			add(probe.Redirect, i.Node)
		case i.MgmtNet != nil:
			add(probe.Bridge, i.Node)
		case i.Wire != nil && i.Wire.Datapath == "vxlan":
			add(probe.Redirect, i.Node)
		case i.Wire != nil && i.Wire.Datapath == "local":
			add(probe.PeerRedirect, i.Node)
		}
		if i.Bridge != "" {
			add(probe.Bridge, i.Node)
		}
	}
}
