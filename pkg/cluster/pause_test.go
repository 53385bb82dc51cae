package cluster

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// TestPause: a node that was stopped before stays stopped.
func TestPause(t *testing.T) {
	deployment := func(name, lab string, replicas int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{contract.LabelLab: lab, contract.LabelComponent: contract.ComponentNode}},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		}
	}
	client := fake.NewClientset(deployment("r1", "demo", 1), deployment("r2", "demo", 1), deployment("r3", "demo", 0), deployment("x1", "other", 1))
	c := &Client{Typed: client}
	lab := Found{Name: "demo", Namespace: "ns"}
	for _, step := range []struct {
		resume bool
		want   []string
		now    map[string]int32
	}{
		{false, []string{"r1", "r2"}, map[string]int32{"r1": 0, "r2": 0, "r3": 0, "x1": 1}},
		{false, nil, map[string]int32{"r1": 0, "r2": 0, "r3": 0, "x1": 1}},
		{true, []string{"r1", "r2"}, map[string]int32{"r1": 1, "r2": 1, "r3": 0, "x1": 1}},
		{true, nil, map[string]int32{"r1": 1, "r2": 1, "r3": 0, "x1": 1}},
	} {
		got, err := c.Pause(t.Context(), lab, step.resume)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, step.want) {
			t.Errorf("resume %v: %v, %v; want %v", step.resume, got, err, step.want)
		}
		for name, want := range step.now {
			d, err := client.AppsV1().Deployments("ns").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || *d.Spec.Replicas != want {
				t.Errorf("resume %v: %s has %d replicas, %v", step.resume, name, *d.Spec.Replicas, err)
			}
		}
	}
}
