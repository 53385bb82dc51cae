package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// object is one of the Pod "r1" (or of the lab, for pod ""), with fields below
// spec.
func object(pod string, spec map[string]any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{
			"labels":      map[string]any{contract.LabelPod: pod},
			"annotations": map[string]any{contract.AnnotationNodeName: "R1,Sniffer"},
		},
		"spec": spec,
	}
}

// deploymentOf returns a Deployment with one container and its link-apply mode.
func deploymentOf(mode, image string, replicas int64) map[string]any {
	o := object("r1", map[string]any{
		"replicas": replicas,
		"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "r1", "image": image}}}},
	})
	o["metadata"].(map[string]any)["annotations"].(map[string]any)[contract.AnnotationLinkApply] = mode
	return o
}

func TestJudgeDiff(t *testing.T) {
	links := func(mode string) []ObjectDiff {
		return []ObjectDiff{
			{"Deployment/r1", deploymentOf(mode, "frr:1", 1), deploymentOf(mode, "frr:1", 1)},
			{"ConfigMap/r1-links", object("r1", map[string]any{"n": "1"}), object("r1", map[string]any{"n": "2"})},
		}
	}
	staged := func(digest string) map[string]any {
		o := deploymentOf("live", "frr:1", 1)
		o["spec"].(map[string]any)["template"].(map[string]any)["metadata"] = map[string]any{"annotations": map[string]any{contract.AnnotationStaged: digest}}
		return o
	}
	same := ObjectDiff{"Deployment/r1", deploymentOf("live", "frr:1", 1), deploymentOf("live", "frr:1", 1)}
	for name, c := range map[string]struct {
		objects []ObjectDiff
		action  Action
		why     string
		changed int
	}{
		"nothing":        {[]ObjectDiff{same}, ActionNone, "", 0},
		"links, live":    {links("live"), ActionLive, "links", 1},
		"links, restart": {links("restart"), ActionRestart, "links", 1},
		"links, new Pod": {links("recreate"), ActionRecreate, "links", 1},
		"links, no word": {links(""), ActionLive, "links", 1},
		"image":          {[]ObjectDiff{{"Deployment/r1", deploymentOf("live", "frr:1", 1), deploymentOf("live", "frr:2", 1)}}, ActionRecreate, "image", 1},
		"files":          {[]ObjectDiff{{"Deployment/r1", staged("a"), staged("b")}}, ActionRecreate, "files or commands", 1},
		"stopped":        {[]ObjectDiff{{"Deployment/r1", deploymentOf("live", "frr:1", 0), deploymentOf("live", "frr:1", 1)}}, ActionStart, "it was stopped", 1},
		"new":            {[]ObjectDiff{{"Deployment/r1", nil, deploymentOf("live", "frr:1", 1)}, {"ConfigMap/r1-links", nil, object("r1", nil)}}, ActionCreate, "new", 2},
		"gone":           {[]ObjectDiff{{"Deployment/r1", deploymentOf("live", "frr:1", 1), nil}}, ActionDelete, "removed from the topology", 1},
		"a Service":      {[]ObjectDiff{same, {"Service/r1", nil, object("r1", nil)}}, ActionLive, "services", 1},
		"a certificate":  {[]ObjectDiff{same, {"Secret/r1-tls", nil, object("r1", nil)}}, ActionLive, "certificate", 1},
		"image and links": {append(links("live")[1:], ObjectDiff{"Deployment/r1", deploymentOf("live", "frr:1", 1), deploymentOf("live", "frr:2", 1)}),
			ActionRecreate, "image,links", 2},
	} {
		t.Run(name, func(t *testing.T) {
			d := judgeDiff(c.objects)
			if len(d.Nodes) != 1 {
				t.Fatalf("%d Pods", len(d.Nodes))
			}
			n := d.Nodes[0]
			if n.Action != c.action || strings.Join(n.Why, ",") != c.why || !slices.Equal(n.Nodes, []string{"R1", "Sniffer"}) {
				t.Errorf("%s %v, nodes %v; want %s %s", n.Action, n.Why, n.Nodes, c.action, c.why)
			}
			if len(d.Objects) != c.changed || d.Lab {
				t.Errorf("%d objects change, the lab's %v; want %d", len(d.Objects), d.Lab, c.changed)
			}
			stops := c.action == ActionRestart || c.action == ActionRecreate || c.action == ActionDelete
			if got := len(d.Disruptive()) == 1; got != stops {
				t.Errorf("stops a device: %v", got)
			}
		})
	}
}

func TestJudgeDiffOfTheLab(t *testing.T) {
	for named, names := range map[string]bool{"ConfigMap/c9s-directory": true, "ConfigMap/c9s-directory-1": true, "Role/c9s-controller": false} {
		d := judgeDiff([]ObjectDiff{{named, object("", map[string]any{"n": "1"}), object("", map[string]any{"n": "2"})}})
		if !d.Lab || d.names != names || len(d.Nodes) != 0 {
			t.Errorf("%s: %+v", named, d)
		}
	}
}

func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pod := func(p status.Progress) []PodProgress { return []PodProgress{{Pod: "r1", PodName: "r1-x", Progress: p}} }
	none := func(p status.Progress) []PodProgress { return []PodProgress{{Pod: "r1", Progress: p}} }
	many := func(p status.Progress, n int) []PodProgress {
		return slices.Repeat([]PodProgress{{Pod: "r1", Progress: p}}, n)
	}
	quota := status.Progress{State: status.StateFailed, Reason: "FailedCreate", Message: "exceeded quota", Doubtful: true}
	slow := status.Progress{State: status.StateFailed, Reason: "ErrImagePull", Message: "i/o timeout", Doubtful: true}
	lost := status.Progress{State: status.StatePending, Reason: "Unschedulable"}
	for name, c := range map[string]struct {
		pods          []PodProgress
		since         time.Duration // how long ago it was first unschedulable; 0 for never
		failed, ready bool
	}{
		"ready":                    {pod(status.Progress{State: status.StateReady}), 0, false, true},
		"stopped":                  {pod(status.Progress{State: status.StateStopped}), 0, false, true},
		"booting":                  {pod(status.Progress{State: status.StateBooting}), 0, false, false},
		"failed, perhaps":          {pod(status.Progress{State: status.StateFailed}), 0, false, false},
		"failed, certainly":        {pod(status.Progress{State: status.StateFailed, Certain: true}), 0, true, false},
		"no worker, at first":      {pod(lost), 0, false, false},
		"no worker, for a while":   {pod(lost), unschedulable - time.Second, false, false},
		"no worker, for too long":  {pod(lost), unschedulable + time.Second, true, false},
		"pulls again, at first":    {pod(slow), 0, false, false},
		"pulls again, for a while": {pod(slow), doubt - time.Second, false, false},
		"pulls again, for long":    {pod(slow), doubt + time.Second, true, false},
		"refused, at first":        {none(quota), 0, false, false},
		"refused, before":          {none(quota), refused - time.Second, false, false},
		"refused, again":           {none(quota), refused + time.Second, true, false},
		"refused, with many":       {many(quota, 100), refused + 10*time.Second, false, false},
		"refused, with many again": {many(quota, 100), refused + 16*time.Second, true, false},
		"ready, but just restarts": {pod(status.Progress{State: status.StateReady, LastExit: now.Add(-time.Second)}), 0, false, false},
		"ready, restarted once":    {pod(status.Progress{State: status.StateReady, LastExit: now.Add(-time.Minute)}), 0, false, true},
		"a worker was found":       {pod(status.Progress{State: status.StatePulling}), time.Hour, false, false},
	} {
		seen := newSightings()
		seen.running["r1"] = run{pod: c.pods[0].PodName, since: now.Add(-steady)}
		if c.since > 0 {
			seen.doubted["r1"] = doubted{c.pods[0].PodName + " " + c.pods[0].Reason, now.Add(-c.since)}
		}
		failed, ready := seen.judge(c.pods, now)
		if (len(failed) > 0) != c.failed || ready != c.ready {
			t.Errorf("%s: failed %v, ready %v", name, failed, ready)
		}
		if _, still := seen.doubted["r1"]; still != (c.pods[0].Reason != "") {
			t.Errorf("%s: is doubted: %v", name, still)
		}
	}
}

// Ready is believed when the devices have run for a while: counted from when they were
// first seen to run, again for each start and for each Pod.
func TestJudgeSteady(t *testing.T) {
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	type moment struct {
		after    time.Duration
		pod      string
		state    status.State
		restarts int
		ready    bool
	}
	for name, moments := range map[string][]moment{
		"ready at once":             {{0, "a", status.StateReady, 0, false}, {steady - 1, "a", status.StateReady, 0, false}, {steady, "a", status.StateReady, 0, true}},
		"booted for a while":        {{0, "a", status.StateBooting, 0, false}, {time.Minute, "a", status.StateBooting, 0, false}, {time.Minute, "a", status.StateReady, 0, true}},
		"started anew":              {{0, "a", status.StateReady, 0, false}, {time.Second, "a", status.StateReady, 1, false}, {time.Second + steady, "a", status.StateReady, 1, false}, {time.Second + steadyAgain, "a", status.StateReady, 1, true}},
		"started anew, seen ending": {{0, "a", status.StateReady, 0, false}, {time.Second, "a", status.StateFailed, 0, false}, {2 * time.Second, "a", status.StateReady, 1, false}, {time.Second + steadyAgain, "a", status.StateReady, 1, false}, {2*time.Second + steadyAgain, "a", status.StateReady, 1, true}},
		"another Pod":               {{0, "a", status.StateReady, 0, false}, {time.Minute, "b", status.StateReady, 0, false}, {time.Minute + steady, "b", status.StateReady, 0, true}},
		"broken in between":         {{0, "a", status.StateReady, 0, false}, {time.Second, "a", status.StateFailed, 0, false}, {time.Minute, "a", status.StateReady, 0, false}},
		"stopped in the mean":       {{0, "a", status.StateReady, 0, false}, {time.Second, "", status.StateStopped, 0, true}},
	} {
		seen := newSightings()
		for i, m := range moments {
			p := PodProgress{Pod: "r1", PodName: m.pod, Progress: status.Progress{State: m.state, Restarts: m.restarts}}
			if _, ready := seen.judge([]PodProgress{p}, began.Add(m.after)); ready != m.ready {
				t.Errorf("%s: at its moment %d, ready %t", name, i, ready)
			}
		}
	}
}

// A wait looks again when the last ready Pod counts as settled, and not half a second later.
func TestNextLook(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	seen := newSightings()
	pod := func(name string, s status.State) PodProgress {
		return PodProgress{Pod: name, PodName: name + "-1", Progress: status.Progress{State: s}}
	}
	seen.judge([]PodProgress{pod("a", status.StateReady)}, now)
	if got := seen.next(now); got != look {
		t.Errorf("at once: %s, want %s", got, look)
	}
	now = now.Add(steady - 200*time.Millisecond)
	seen.judge([]PodProgress{pod("a", status.StateReady)}, now)
	if got := seen.next(now); got != 200*time.Millisecond {
		t.Errorf("200 ms before it is settled: %s", got)
	}
	seen.judge([]PodProgress{pod("a", status.StateReady), pod("b", status.StateReady)}, now)
	if got := seen.next(now); got != look {
		t.Errorf("with another that has just become ready: %s, want %s", got, look)
	}
}

// Failures of one kind come one after another, as their workers get to them: those
// about to start are waited for, those that run or have no worker are not.
func TestGatherFor(t *testing.T) {
	for name, c := range map[string]struct {
		states []status.State
		want   time.Duration
	}{
		"all told":         {[]status.State{status.StateFailed, status.StateReady, status.StateStopped}, gather},
		"one boots":        {[]status.State{status.StateFailed, status.StateBooting}, gather},
		"one has no place": {[]status.State{status.StateFailed, status.StatePending}, gather},
		"one pulls":        {[]status.State{status.StateFailed, status.StatePulling}, gatherMost},
		"one is prepared":  {[]status.State{status.StatePreparing, status.StateFailed}, gatherMost},
		"one is wired":     {[]status.State{status.StateFailed, status.StateReady, status.StateWiring}, gatherMost},
		"one starts":       {[]status.State{status.StateStarting, status.StateFailed}, gatherMost},
	} {
		var progress []PodProgress
		for _, s := range c.states {
			progress = append(progress, PodProgress{Progress: status.Progress{State: s}})
		}
		if got := gatherFor(progress); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestFailureError(t *testing.T) {
	f := Failure{PodProgress: PodProgress{Nodes: []string{"R1"}, Source: "topo.clab.yml:7", Worker: "n1", Progress: status.Progress{State: status.StateFailed, Reason: "CrashLoopBackOff"}}, Log: "one\ntwo\n"}
	const want = "node R1 (topo.clab.yml:7) on worker n1: failed, its container ends again and again\n    | one\n    | two"
	if got := f.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPressures(t *testing.T) {
	worker := func(name string, disk corev1.ConditionStatus) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "kubelet is posting ready status"},
			{Type: corev1.NodeDiskPressure, Status: disk, Message: "kubelet has disk pressure"},
		}}}
	}
	got := pressures([]corev1.Node{worker("n1", corev1.ConditionFalse), worker("n2", corev1.ConditionTrue)})
	if want := "; worker n2 has DiskPressure: kubelet has disk pressure"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p := status.Progress{State: status.StateFailed, Reason: "Unschedulable", Message: "0/2 nodes are available" + got}
	if cause := p.Cause(); !strings.Contains(cause, "too little room on their disk") || !strings.Contains(cause, "n2") {
		t.Errorf("cause %q", cause)
	}
}

func TestRolledOut(t *testing.T) {
	for name, c := range map[string]struct {
		generation, observed int64
		replicas, updated    int32
		want                 bool
	}{
		"new, nothing reported yet":     {1, 0, 0, 0, true},
		"changed, nothing reported yet": {2, 1, 1, 1, false},
		"changed, the old Pod is there": {2, 2, 1, 0, false},
		"changed, the new Pod is there": {2, 2, 1, 1, true},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: c.generation}, Status: appsv1.DeploymentStatus{ObservedGeneration: c.observed, Replicas: c.replicas, UpdatedReplicas: c.updated}}
		if got := observed(d) && rolledOut(d); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A worker's clock that is behind or ahead neither keeps a Pod from being ready nor
// makes one ready that has just ended.
func TestJudgeClocks(t *testing.T) {
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
		seen := newSightings()
		at := func(after time.Duration, restarts int, exit time.Duration) bool {
			p := PodProgress{Pod: "r1", PodName: "a", Progress: status.Progress{State: status.StateReady, Restarts: restarts, LastExit: began.Add(exit + skew)}}
			_, ready := seen.judge([]PodProgress{p}, began.Add(after))
			return ready
		}
		if at(0, 1, -time.Minute) {
			t.Errorf("skew %s: ready at once", skew)
		}
		if !at(steadyAgain, 1, -time.Minute) {
			t.Errorf("skew %s: not ready long after an end before the wait", skew)
		}
		if at(20*time.Second, 2, 19*time.Second) || at(20*time.Second+steady, 2, 19*time.Second) {
			t.Errorf("skew %s: ready right after an end", skew)
		}
		if !at(20*time.Second+steadyAgain, 2, 19*time.Second) {
			t.Errorf("skew %s: not ready long after an end", skew)
		}
	}
}
