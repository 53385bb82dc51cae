package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

var nodeLabels = map[string]string{contract.LabelLab: "mine", contract.LabelComponent: contract.ComponentNode, contract.LabelPod: "r1"}

// r1 is a node's Deployment and its Pod, which the kubelet cannot pull an image for.
func r1() (*appsv1.Deployment, *corev1.Pod) {
	made := metav1.NewTime(time.Unix(1000, 0))
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "r1", Labels: nodeLabels, Generation: 1, CreationTimestamp: made, Annotations: map[string]string{contract.AnnotationNodeName: "R1"}}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "r1-x", Labels: nodeLabels, CreationTimestamp: made},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "r1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "frr:9: not found"}},
		}}},
	}
	return d, pod
}

// What became of a Pod counts only if it is of the present template.
func TestProgressOfOldPods(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*appsv1.Deployment, *corev1.Pod)
		state  status.State
		// unsettled is a Pod whose fate is open: it is not said to go, and not believed.
		unsettled bool
	}{
		"the present Pod":        {func(*appsv1.Deployment, *corev1.Pod) {}, status.StateFailed, false},
		"a change, not seen yet": {func(d *appsv1.Deployment, _ *corev1.Pod) { d.Generation, d.Status.ObservedGeneration = 2, 1 }, status.StateFailed, true},
		"a change, not seen yet, of a Pod that is ready": {func(d *appsv1.Deployment, p *corev1.Pod) {
			d.Generation, d.Status.ObservedGeneration = 2, 1
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}, status.StateReady, true},
		"a change that leaves the Pod": {func(d *appsv1.Deployment, _ *corev1.Pod) {
			d.Generation, d.Status.ObservedGeneration, d.Status.Replicas, d.Status.UpdatedReplicas = 2, 2, 1, 1
		}, status.StateFailed, false},
		"a new template": {func(d *appsv1.Deployment, _ *corev1.Pod) {
			d.Generation, d.Status.ObservedGeneration, d.Status.Replicas = 2, 2, 1
		}, status.StateTerminating, false},
		"a new Deployment": {func(d *appsv1.Deployment, _ *corev1.Pod) {
			d.CreationTimestamp = metav1.NewTime(time.Unix(2000, 0))
		}, status.StateTerminating, false},
		"no Pod, refused before": {func(d *appsv1.Deployment, p *corev1.Pod) {
			d.Generation, d.Status.ObservedGeneration = 2, 1
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue}}
			p.Labels = nil
		}, status.StatePending, true},
	} {
		d, pod := r1()
		c.change(d, pod)
		client := &Client{Typed: fake.NewClientset(d, pod)}
		ctx, stop := context.WithCancel(t.Context())
		w, err := client.Watch(ctx, "demo", "mine")
		if err != nil {
			t.Fatal(err)
		}
		p := w.Progress()
		if len(p) != 1 || p[0].State != c.state || p[0].Unsettled != c.unsettled || p[0].Certain != (c.state == status.StateFailed && !c.unsettled) {
			t.Errorf("%s: %+v", name, p)
		}
		stop()
	}
}

// Events only explain: a lab can be followed without them, but not without its Pods.
func TestWatchWithoutRights(t *testing.T) {
	for resource, needed := range map[string]bool{"events": false, "pods": true, "deployments": true} {
		d, pod := r1()
		typed := fake.NewClientset(d, pod)
		forbid(&typed.Fake, "list", resource)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		w, err := (&Client{Typed: typed}).Watch(ctx, "demo", "mine")
		switch {
		case needed && (err == nil || !strings.Contains(err.Error(), "forbidden") || ctx.Err() != nil):
			t.Errorf("without %s: %v", resource, err)
		case !needed && (err != nil || len(w.Progress()) != 1):
			t.Errorf("without %s: %v", resource, err)
		}
		stop()
	}
}
