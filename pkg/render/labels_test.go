package render

import (
	"slices"
	"testing"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// TestPodLabels: labels of the topology are labels of the Pod where Kubernetes allows them,
// and never take the place of c9s' own.
func TestPodLabels(t *testing.T) {
	l := newTestLab("labels")
	n, _ := l.node("r1", "linux")
	n.Labels = map[string]string{
		"role": "leaf", "example.org/rack": "a1", "empty": "", "text": "two words", "a b": "c",
		contract.LabelNode: "r9", "sidecar.istio.io/inject": "true", "app.kubernetes.io/name": "mine",
	}
	second, _ := l.node("r2", "linux")
	second.Labels = map[string]string{"role": "spine", "extra": "yes"}
	l.join("r2", "r1")
	d := deploymentOf(t, l, "r1")
	for key, want := range map[string]string{
		"role": "leaf", "example.org/rack": "a1", "empty": "", "extra": "yes",
		contract.LabelNode: "r1", "sidecar.istio.io/inject": "false",
		contract.LabelLab: "labels", contract.LabelComponent: contract.ComponentNode, // by which destroy finds the Pod
	} {
		if got, ok := d.Spec.Template.Labels[key]; !ok || got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	for _, key := range []string{"text", "a b", "app.kubernetes.io/name"} {
		if _, ok := d.Spec.Template.Labels[key]; ok {
			t.Errorf("label %q is on the Pod", key)
		}
	}
	_, diags := l.render(t)
	if len(diags) != 1 || diags[0].Code != CodeLabel || diags[0].Severity != diag.Warning {
		t.Errorf("%v", diags)
	}
	n.Labels = map[string]string{"role": "leaf"}
	if _, diags := l.render(t); slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Code == CodeLabel }) {
		t.Errorf("%v", diags)
	}
}
