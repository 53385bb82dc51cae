package render

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// What the policies of all nodes have holds for the controller's Pod too, and nothing
// that only some have.
func TestControllerHasWhatAllHave(t *testing.T) {
	toleration := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
	}
	l := newTestLab("common")
	a, _ := l.node("a", "linux")
	a.Policy = lab.Policy{
		NodeSelector: map[string]string{"pool": "labs", "zone": "a"}, ImagePullSecrets: []string{"mine", "registry"},
		Tolerations: []corev1.Toleration{toleration("labs"), toleration("gpu")},
	}
	b, _ := l.node("b", "linux")
	b.Policy = lab.Policy{
		NodeSelector: map[string]string{"pool": "labs", "zone": "b"}, ImagePullSecrets: []string{"registry"},
		Tolerations: []corev1.Toleration{toleration("labs")},
	}
	spec := func() corev1.PodSpec {
		return (&labBuilder{index: newIndex(l.Lab, l.plans, l.opts, &diag.List{})}).controllerDeployment().Spec.Template.Spec
	}
	got := spec()
	if want := map[string]string{corev1.LabelOSStable: "linux", "pool": "labs"}; !reflect.DeepEqual(got.NodeSelector, want) {
		t.Errorf("nodeSelector %v, want %v", got.NodeSelector, want)
	}
	if want := []corev1.Toleration{toleration("labs")}; !reflect.DeepEqual(got.Tolerations, want) {
		t.Errorf("tolerations %v, want %v", got.Tolerations, want)
	}
	if want := []corev1.LocalObjectReference{{Name: "registry"}}; !reflect.DeepEqual(got.ImagePullSecrets, want) {
		t.Errorf("imagePullSecrets %v, want %v", got.ImagePullSecrets, want)
	}
	b.Policy = lab.Policy{}
	if got := spec(); len(got.NodeSelector) != 1 || got.Tolerations != nil || got.ImagePullSecrets != nil {
		t.Errorf("a node without a policy: %v %v %v", got.NodeSelector, got.Tolerations, got.ImagePullSecrets)
	}
}
