package status

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// A worker's clock is off by as much as it likes: what is said of its Pods is the same.
func TestClockOff(t *testing.T) {
	for _, off := range []time.Duration{-10 * time.Minute, 0, 10 * time.Minute} {
		t.Run(off.String(), func(t *testing.T) {
			worker := func(after time.Duration) metav1.Time { return metav1.NewTime(created.Add(off + after)) }
			began := func(p *corev1.Pod) { p.Status.StartTime = new(worker(time.Second)) }

			for after, want := range map[time.Duration]State{3 * time.Second: StatePulling, time.Minute: StateFailed} {
				missing := event("FailedMount", `secret "x" not found`, off+after)
				if got := Of(nil, onWorker(began), []corev1.Event{missing}); got.State != want {
					t.Errorf("a Secret missing for %s: %s, want %s", after, got.State, want)
				}
			}

			pod := readyPod("r1", "R1")
			began(pod)
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created.Add(time.Second))})
			lab := Compute(Facts{
				Name: "demo", Namespace: "ns", Directory: contract.Directory{Nodes: []contract.DirectoryNode{{Name: "R1", Pod: "r1"}}}, Pods: []*corev1.Pod{pod},
			})
			if got, want := lab.Nodes[0].Started, created.Add(time.Second); !got.Equal(want) {
				t.Errorf("started %s, want %s", got, want)
			}

			// The worker is lost: the control plane takes Ready away a minute later.
			silent := onWorker(began, inits(prepared, running(WireContainer)), devices(running("r1")))
			silent.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: worker(2 * time.Second)},
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: worker(3 * time.Second)},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(created.Add(time.Minute))},
			}
			silent.Status.ContainerStatuses[0].State.Running.StartedAt = worker(3 * time.Second)
			if got := Of(nil, silent, nil); got.State != StateDegraded {
				t.Errorf("a Pod that was ready on a worker that is lost: %s", got.State)
			}
		})
	}
}
