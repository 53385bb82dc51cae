package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// loseNamespace makes a Pod one whose sidecar has ended for the loss of its namespace.
func loseNamespace(pod *corev1.Pod) {
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name:                 status.WireContainer,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: contract.LostMessage + "\n"}},
	}}
}

// Each row is one round of the leader after the other, and what it wrote in all.
func TestReplace(t *testing.T) {
	whole := pods()
	lost := pods()
	loseNamespace(lost[1])
	going := pods()
	loseNamespace(going[1])
	going[1].DeletionTimestamp = new(metav1.NewTime(time.Now()))
	evicted := pods()
	loseNamespace(evicted[1])
	evicted[1].Status.Phase = corev1.PodFailed
	again := pods()
	loseNamespace(again[1])
	again[1].Status.InitContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	successor := pods()
	successor[1].Name, successor[1].UID = "r2-2", "r2-2"
	loseNamespace(successor[1])
	once := []string{"delete pods", "event PodReplaced"}
	for name, c := range map[string]struct {
		rounds [][]*corev1.Pod
		fails  int
		want   []string
	}{
		"all is well":               {rounds: [][]*corev1.Pod{whole}},
		"one is lost":               {rounds: [][]*corev1.Pod{whole, lost, lost, going}, want: once},
		"it is being deleted":       {rounds: [][]*corev1.Pod{going, going}},
		"the kubelet was sooner":    {rounds: [][]*corev1.Pod{evicted}},
		"it has found it again":     {rounds: [][]*corev1.Pod{again}},
		"its successor is lost too": {rounds: [][]*corev1.Pod{lost, successor, successor}, want: slices.Concat(once, once)},
		"the API server is away":    {rounds: [][]*corev1.Pod{lost, lost, lost}, fails: 1, want: slices.Concat([]string{"delete pods"}, once)},
	} {
		t.Run(name, func(t *testing.T) {
			client := cluster(t, nil)
			fails := c.fails
			client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				d := a.(clienttesting.DeleteAction)
				if p := d.GetDeleteOptions().Preconditions; p == nil || p.UID == nil {
					t.Errorf("Pod %s is deleted by its name alone", d.GetName())
				}
				if fails > 0 {
					fails--
					return true, nil, errors.New("no answer")
				}
				return true, nil, nil
			})
			r := newReplacer(client, newEventWriter(client, namespace))
			failed := 0
			for _, pods := range c.rounds {
				if r.replace(t.Context(), pods) != nil {
					failed++
				}
			}
			if failed != c.fails {
				t.Errorf("%d rounds failed, want %d", failed, c.fails)
			}
			if got := writes(client); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
