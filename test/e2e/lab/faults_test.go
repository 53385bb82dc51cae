package lab

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// healWithin is how long wires and management may take after the start of a new
// Pod's sidecar.
const healWithin = 10 * time.Second

// faults breaks testdata/isp in every way, one after the other, and measures.
func faults(t *testing.T, l *lab) {
	for _, fault := range []struct {
		name string
		// breaks the lab, and returns what may restart; all else must not.
		do func(*testing.T, *lab) []string
	}{
		{"Pod deleted", deletePod},
		{"Pod moved to another worker", movePod},
		{"device container killed", func(t *testing.T, l *lab) []string { return kill(t, l, "r4", "r4") }},
		{"sidecar killed", func(t *testing.T, l *lab) []string { return kill(t, l, "r4", "wire") }},
		{"controller killed", killController},
	} {
		t.Run(fault.name, func(t *testing.T) {
			before := restarts(t, l)
			stop := l.traffic(t, "PC1", customers["PC2"]) // next to the fault, not through it
			began := time.Now()
			touched := fault.do(t, l)
			l.healed(t, touched, began)
			l.works(t)
			t.Logf("sessions and customers back after %s", time.Since(began).Round(100*time.Millisecond))
			if gap := stop(); gap > time.Second {
				t.Errorf("traffic beside the fault paused for %s", gap)
			}
			for name, was := range before {
				if now := restarts(t, l)[name]; now != was && !slices.Contains(touched, name) {
					t.Errorf("%s restarted as well: it was %s and is %s", name, was, now)
				}
			}
		})
	}
}

// healed waits until all links are up again, and checks that they were soon after
// the start of the sidecars that are new.
func (l *lab) healed(t *testing.T, touched []string, began time.Time) {
	t.Helper()
	var up time.Time
	testcluster.Eventually(t, 2*time.Minute, "all links to be up again", func() error {
		s := l.status(t, "--fresh")
		for _, n := range s.Nodes {
			if n.State != "ready" {
				return fmt.Errorf("node %s is %s %s", n.Name, n.State, n.Reason)
			}
		}
		if s.State != "ready" {
			return fmt.Errorf("the lab is %s", s.State)
		}
		up = time.Now()
		return nil
	})
	for _, name := range touched {
		pod := l.pod(t, name)
		for _, s := range pod.Status.InitContainerStatuses {
			if s.Name != "wire" || s.State.Running == nil || s.State.Running.StartedAt.Time.Before(began.Truncate(time.Second)) {
				continue
			}
			// The kubelet tells whole seconds.
			took := up.Sub(s.State.Running.StartedAt.Time)
			t.Logf("%s: all ready %s after its sidecar's start, %s after the fault", name, took.Round(100*time.Millisecond), up.Sub(began).Round(100*time.Millisecond))
			if took > healWithin+time.Second {
				t.Errorf("%s healed %s after its start, want %s", name, took, healWithin)
			}
		}
	}
}

// restarts tells the Pods' names and their containers' restarts.
func restarts(t *testing.T, l *lab) map[string]string {
	t.Helper()
	list, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "c9s.dev/component=node"})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		text := pod.Name
		for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			text += " " + s.Name + " " + strconv.Itoa(int(s.RestartCount))
		}
		out[pod.Labels["c9s.dev/pod"]] = text
	}
	return out
}

// traffic pings ten times a second until it is stopped, and then tells the
// longest pause.
func (l *lab) traffic(t *testing.T, from, to string) (stop func() time.Duration) {
	t.Helper()
	if out, err := l.in(t.Context(), from, "sh", "-c", "ping -D -i 0.1 "+to+" >/tmp/traffic 2>&1 & echo $! >/tmp/traffic.pid"); err != nil {
		t.Fatalf("starting traffic: %v\n%s", err, out)
	}
	return func() time.Duration {
		out, err := l.in(context.Background(), from, "sh", "-c", "kill $(cat /tmp/traffic.pid); sleep 0.2; cat /tmp/traffic")
		if err != nil {
			t.Fatalf("ending traffic: %v\n%s", err, out)
		}
		var last, longest float64
		for line := range strings.Lines(out) {
			stamp, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "]")
			at, err := strconv.ParseFloat(stamp, 64)
			if !ok || err != nil || !strings.Contains(rest, "bytes from") {
				continue
			}
			if last > 0 {
				longest = max(longest, at-last)
			}
			last = at
		}
		if last == 0 {
			t.Errorf("no traffic at all from %s to %s:\n%s", from, to, out)
		}
		return time.Duration(longest * float64(time.Second))
	}
}

func deletePod(t *testing.T, l *lab) []string {
	old := l.pod(t, "r4")
	if err := l.Typed.CoreV1().Pods(l.ns).Delete(t.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	l.replaced(t, old)
	return []string{"r4"}
}

// replaced waits until a Pod has a successor.
func (l *lab) replaced(t *testing.T, old *corev1.Pod) {
	t.Helper()
	testcluster.Eventually(t, time.Minute, "a successor of "+old.Name, func() error {
		list, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "c9s.dev/pod=" + old.Labels["c9s.dev/pod"]})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if pod.UID != old.UID {
				return nil
			}
		}
		return fmt.Errorf("%d Pods", len(list.Items))
	})
}

func movePod(t *testing.T, l *lab) []string {
	old := l.pod(t, "r4")
	setUnschedulable(t, l, old.Spec.NodeName, true)
	defer setUnschedulable(t, l, old.Spec.NodeName, false)
	touched := deletePod(t, l)
	testcluster.Eventually(t, time.Minute, "r4 on another worker", func() error {
		if pod := l.pod(t, "r4"); pod.Spec.NodeName == "" || pod.Spec.NodeName == old.Spec.NodeName {
			return fmt.Errorf("it is on %q", pod.Spec.NodeName)
		}
		return nil
	})
	return touched
}

func setUnschedulable(t *testing.T, l *lab, worker string, yes bool) {
	t.Helper()
	node, err := l.Typed.CoreV1().Nodes().Get(context.Background(), worker, metav1.GetOptions{})
	if err == nil {
		node.Spec.Unschedulable = yes
		_, err = l.Typed.CoreV1().Nodes().Update(context.Background(), node, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, l *lab, name, container string) []string {
	pod := l.pod(t, name)
	l.KillContainer(t, pod, container)
	testcluster.Eventually(t, time.Minute, container+" of "+name+" to be started again", func() error {
		now := l.pod(t, name)
		for _, s := range append(now.Status.InitContainerStatuses, now.Status.ContainerStatuses...) {
			if s.Name == container && s.RestartCount == 0 {
				return fmt.Errorf("not yet")
			}
		}
		return nil
	})
	return []string{name}
}

func killController(t *testing.T, l *lab) []string {
	err := l.Typed.CoreV1().Pods(l.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "c9s.dev/component=controller"})
	if err != nil {
		t.Fatal(err)
	}
	return nil
}
