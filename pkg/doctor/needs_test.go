package doctor

import (
	"encoding/json"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/google/go-cmp/cmp"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/render"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

func TestNeedsOfALab(t *testing.T) {
	doc, err := json.Marshal(contract.Links{Interfaces: []contract.Interface{
		{Node: "R1", Macvlan: &contract.Macvlan{}}, {Node: "R1", Macvlan: &contract.Macvlan{}},
		{Node: "br", Bridge: "br", Wire: &contract.Wire{Datapath: "auto"}},
		{Node: "R2", Wire: &contract.Wire{Datapath: "vxlan"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	meta := func(component string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "r1", Labels: map[string]string{contract.LabelComponent: component}, Annotations: map[string]string{contract.AnnotationNodeName: "R1,R2"}}
	}
	typed := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind} }
	objects := []runtime.Object{
		&corev1.Namespace{TypeMeta: typed("Namespace")},
		&rbacv1.Role{TypeMeta: typed("Role"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}},
		&corev1.ConfigMap{TypeMeta: typed("ConfigMap"), Data: map[string]string{contract.LinksFile: string(doc)}},
		&corev1.PersistentVolumeClaim{TypeMeta: typed("PersistentVolumeClaim"), ObjectMeta: metav1.ObjectMeta{Name: "r1-data"}},
		&corev1.Service{TypeMeta: typed("Service"), ObjectMeta: meta(contract.ComponentNode), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
		&corev1.Service{TypeMeta: typed("Service"), ObjectMeta: meta(contract.ComponentNode)},
		&appsv1.Deployment{TypeMeta: typed("Deployment"), ObjectMeta: meta(contract.ComponentController)},
		&appsv1.Deployment{TypeMeta: typed("Deployment"), ObjectMeta: meta(contract.ComponentNode), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{{Name: "host-dev-kvm", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/dev/kvm"}}}},
		}}}},
	}
	out := &render.Output{Lab: "demo"}
	for _, o := range objects {
		out.Objects = append(out.Objects, manifest.Object{Object: o})
	}
	n := Of(out)
	if n.Lab != "demo" || len(n.Rules) != 1 {
		t.Errorf("needs %+v", n)
	}
	if diff := cmp.Diff([]string{"ConfigMap", "Deployment", "PersistentVolumeClaim", "Role", "Service"}, n.Kinds); diff != "" {
		t.Errorf("kinds: %s", diff)
	}
	if diff := cmp.Diff([]Claim{{Name: "r1-data"}}, n.Claims); diff != "" {
		t.Errorf("claims: %s", diff)
	}
	if !slices.Equal(n.Balanced, []string{"R1,R2"}) {
		t.Errorf("balanced %v", n.Balanced)
	}
	if len(n.Pods) != 1 || !n.Pods[0].KVM || !n.Pods[0].TUN || !slices.Equal(n.Pods[0].Nodes, []string{"R1", "R2"}) {
		t.Errorf("Pods %+v: the controller's is none of them", n.Pods)
	}
	if diff := cmp.Diff(map[probe.Feature][]string{probe.Macvlan: {"R1"}, probe.Bridge: {"br"}, probe.Redirect: {"R2"}, probe.Flower: {"R1", "R2"}}, n.Features); diff != "" {
		t.Errorf("features: %s", diff)
	}
	if dry := dryPod(n); len(dry.Spec.Volumes) != 1 || !*dry.Spec.InitContainers[0].SecurityContext.Privileged {
		t.Errorf("the Pod for admission: %+v", dry.Spec)
	}
}
