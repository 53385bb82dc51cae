package status

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// pairOf is a lab of R1 and R2, ready, with link 7 between them, up.
func pairOf() Facts {
	up := wire.WireStatus{ID: 7, Up: true}
	f := Facts{
		Asked:     true,
		Directory: contract.Directory{Nodes: []contract.DirectoryNode{{Name: "R1", Pod: "r1"}, {Name: "R2", Pod: "r2"}}},
		Links:     []contract.TopologyLink{wired(7, "R1", "R2")},
		Pods:      []*corev1.Pod{readyPod("r1", "R1"), readyPod("r2", "R2")},
		Sidecars:  map[string]Answer{"r1": answerOf("R1", "R2", api.StateMade, up), "r2": answerOf("R2", "R1", api.StateMade, up)},
	}
	for _, name := range []string{"r1", "r2"} {
		d := deployment(1)
		d.Name = name
		f.Deployments = append(f.Deployments, d)
	}
	return f
}

// unreadySince makes a Pod not ready, which it was before.
func unreadySince(p *corev1.Pod) {
	p.Status.Conditions = nil
	with(corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [wire]")(p)
	with(corev1.PodInitialized, corev1.ConditionTrue, "", "")(p)
	p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(created.Add(time.Minute))
	p.Status.Conditions[1].LastTransitionTime = metav1.NewTime(created)
}

// Every fault that a status was once found with, as the facts of its moment.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		lab    string
		r1, r2 State
		link   LinkState
	}{
		"at rest": {func(*Facts) {}, LabReady, StateReady, StateReady, LinkUp},
		"stopped a moment ago: its Pod runs, and both sidecars said up": {
			func(f *Facts) { f.Deployments[1].Spec.Replicas = new(int32(0)) }, LabDeploying, StateReady, StateTerminating, LinkDown},
		"stopped, and the neighbour has not noticed": {
			func(f *Facts) {
				f.Deployments[1].Spec.Replicas = new(int32(0))
				f.Pods = f.Pods[:1]
				delete(f.Sidecars, "r2")
			}, LabDegraded, StateReady, StateStopped, LinkDown},
		"its Pod was deleted": {
			func(f *Facts) { f.Pods[1].DeletionTimestamp = new(metav1.Now()) }, LabDeploying, StateReady, StateTerminating, LinkDown},
		"its Pod is gone": {
			func(f *Facts) { f.Pods = f.Pods[:1] }, LabDeploying, StateReady, StatePending, LinkDown},
		"its neighbour starts: a wire is down, so it is not ready": {
			func(f *Facts) { unreadySince(f.Pods[0]) }, LabDegraded, StateDegraded, StateReady, LinkUp},
		"a device that was never ready boots": {
			func(f *Facts) { f.Pods[0].Status.Conditions = nil }, LabDeploying, StateBooting, StateReady, LinkUp},
		"nobody answers": {
			func(f *Facts) { f.Sidecars = nil }, LabDegraded, StateDegraded, StateDegraded, LinkUnknown},
		"nobody may be asked": {
			func(f *Facts) { f.Sidecars, f.Asked = nil, false }, LabDegraded, StateReady, StateReady, LinkUnknown},
		"a sidecar has been silent for long": {
			func(f *Facts) { f.Sidecars["r2"] = aged(20*time.Second, f.Sidecars["r2"]) }, LabDegraded, StateReady, StateDegraded, LinkUp},
		"a sidecar was silent for a moment": {
			func(f *Facts) { f.Sidecars["r2"] = aged(3*time.Second, f.Sidecars["r2"]) }, LabReady, StateReady, StateReady, LinkUp},
		"another Pod speaks for it": {
			func(f *Facts) {
				f.Sidecars["r1"] = Answer{Status: api.Status{Interfaces: append(f.Sidecars["r1"].Status.Interfaces, f.Sidecars["r2"].Status.Interfaces...)}}
				f.Sidecars["r1"].Status.Interfaces[1].State = api.StateFailed
			}, LabDegraded, StateReady, StateReady, LinkDegraded},
	} {
		t.Run(name, func(t *testing.T) {
			f := pairOf()
			c.change(&f)
			l := Compute(f)
			if l.State != c.lab || l.Nodes[0].State != c.r1 || l.Nodes[1].State != c.r2 {
				t.Errorf("the lab is %s, R1 %s (%s), R2 %s (%s)", l.State, l.Nodes[0].State, l.Nodes[0].Reason, l.Nodes[1].State, l.Nodes[1].Reason)
			}
			if len(l.Links) != 1 || l.Links[0].State != c.link || l.Links[0].Up != (c.link == LinkUp) {
				t.Errorf("links %+v", l.Links)
			}
			for _, n := range l.Nodes {
				if n.State == StateDegraded && n.Reason == "" {
					t.Errorf("%s is degraded, and nothing says why", n.Name)
				}
			}
		})
	}
}

// What a removed node left is mentioned, and counts nowhere.
func TestLeftover(t *testing.T) {
	f := pairOf()
	old := deployment(1)
	old.Name, old.Annotations = "r3", map[string]string{contract.AnnotationNodeName: "R3"}
	f.Deployments = append(f.Deployments, old)
	going, orphan := readyPod("r4", "R4"), readyPod("r5", "R5")
	going.DeletionTimestamp = new(metav1.Now())
	f.Pods = append(f.Pods, readyPod("r3", "R3"), going, orphan)
	l := Compute(f)
	if len(l.Leftover) != 2 || l.Leftover[0] != (Leftover{Nodes: "R3", Pod: "r3", PodName: "r3-1"}) || l.Leftover[1] != (Leftover{Pod: "r5", PodName: "r5-1"}) {
		t.Errorf("%+v", l.Leftover)
	}
	if ready, all := l.Ready(); l.State != LabReady || ready != 2 || all != 2 {
		t.Errorf("the lab is %s, %d of %d nodes ready", l.State, ready, all)
	}
}
