package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

const (
	// healWithin is how long wires may take after the start of a new Pod's sidecar
	// where nothing else keeps the machine busy, and healMargin what is allowed where
	// something does.
	healWithin = 10 * time.Second
	healMargin = 10 * time.Second
	// pauseMost is the longest that traffic next to a fault may rest, also the
	// machine's own pauses.
	pauseMost = 15 * time.Second
)

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
			flows := l.traffic(t, "PC1", customers["PC2"]) // next to the fault, not through it
			began := time.Now()
			touched := fault.do(t, l)
			l.healed(t, touched, began)
			l.works(t)
			t.Logf("sessions and customers back after %s", time.Since(began).Round(100*time.Millisecond))
			flows.wentOn(t, began)
			for name, was := range before {
				if now := restarts(t, l)[name]; now != was && !slices.Contains(touched, name) {
					t.Errorf("%s restarted as well: it was %s and is %s", name, was, now)
				}
			}
		})
	}
}

// healed waits until all links are up again, and says how soon they were after the
// start of the sidecars that are new.
func (l *lab) healed(t *testing.T, touched []string, began time.Time) {
	t.Helper()
	l.ready(t)
	up := time.Now()
	for _, name := range touched {
		pod := l.pod(t, name)
		for _, s := range pod.Status.InitContainerStatuses {
			if s.Name != "wire" || s.State.Running == nil || s.State.Running.StartedAt.Time.Before(began.Truncate(time.Second)) {
				continue
			}
			t.Logf("%s: seen ready %s after its sidecar's start, %s after the fault", name,
				up.Sub(s.State.Running.StartedAt.Time).Round(100*time.Millisecond), up.Sub(began).Round(100*time.Millisecond))
			l.wiresSoon(t, pod)
		}
	}
}

// wiresSoon compares the sidecars' own times: the start of both ends of a wire, and
// since when it has been up.
func (l *lab) wiresSoon(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	var s struct {
		Started time.Time
		Fabric  struct {
			Wires []struct {
				Up        bool
				Since     time.Time
				PeerEpoch int64
			}
		}
	}
	testcluster.Eventually(t, patience, "the status of "+pod.Name+"'s sidecar", func() error {
		data, err := l.Typed.CoreV1().Pods(l.ns).ProxyGet("http", pod.Name, "14802", "status", nil).DoRaw(t.Context())
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err == nil && (s.Started.IsZero() || len(s.Fabric.Wires) == 0) {
			err = fmt.Errorf("it has no start or no wires: %s", data)
		}
		return err
	})
	var last time.Duration
	for _, w := range s.Fabric.Wires {
		if took := w.Since.Sub(s.Started); w.Up { // what is down again shows nothing
			last = max(last, min(took, w.Since.Sub(time.Unix(0, w.PeerEpoch))))
		}
	}
	t.Logf("%s: its %d wires were up %s after the start of their ends' sidecars, by those' own clocks", pod.Name, len(s.Fabric.Wires), last.Round(10*time.Millisecond))
	if limit := healWithin + healMargin; !testing.Short() && last > limit {
		t.Errorf("the wires of %s were up %s after its start, want %s and %s at most on a busy machine", pod.Name, last, healWithin, limit)
	}
}

// restarts returns the names of the Pods and the restarts of their containers.
func restarts(t *testing.T, l *lab) map[string]string {
	t.Helper()
	out, err := tryRestarts(t, l)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tryRestarts is restarts for those who ask again.
func tryRestarts(t *testing.T, l *lab) (map[string]string, error) {
	t.Helper()
	list, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "c9s.dev/component=node"})
	if err != nil {
		return nil, err
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
	return out, nil
}

// flows are pings from a node, ten a second: to another node, and to itself, which
// reports the machine's own pauses.
type flows struct {
	l        *lab
	from, to string
}

// traffic starts pings, which continue until they are asked for.
func (l *lab) traffic(t *testing.T, from, to string) flows {
	t.Helper()
	for file, address := range map[string]string{"traffic": to, "control": "127.0.0.1"} {
		if out, err := l.in(t.Context(), from, "sh", "-c", fmt.Sprintf("ping -D -i 0.1 %[2]s >/tmp/%[1]s 2>&1 & echo $! >/tmp/%[1]s.pid", file, address)); err != nil {
			t.Fatalf("starting traffic: %v\n%s", err, out)
		}
	}
	f := flows{l, from, to}
	// It flows before anything is broken.
	l.eventually(t, from, "bytes from", "cat", "/tmp/traffic")
	return f
}

// wentOn ends the pings, and checks that answers came all the while since a fault
// started.
func (f flows) wentOn(t *testing.T, began time.Time) {
	t.Helper()
	ended := time.Now()
	answers := map[string][]time.Time{}
	for _, file := range []string{"traffic", "control"} {
		out, err := f.l.in(context.Background(), f.from, "sh", "-c", fmt.Sprintf("kill $(cat /tmp/%[1]s.pid); sleep 0.2; cat /tmp/%[1]s", file))
		if err != nil {
			t.Fatalf("ending traffic: %v\n%s", err, out)
		}
		for line := range strings.Lines(out) {
			stamp, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "]")
			at, err := strconv.ParseFloat(stamp, 64)
			if ok && err == nil && strings.Contains(rest, "bytes from") {
				answers[file] = append(answers[file], time.UnixMicro(int64(at*1e6)))
			}
		}
	}
	after := 0
	for _, at := range answers["traffic"] {
		if at.After(began) {
			after++
		}
	}
	pause, own := longest(answers["traffic"], ended), longest(answers["control"], ended)
	t.Logf("traffic from %s to %s: %d answers in the %s since the fault, longest pause %s, of the machine itself %s", f.from, f.to, after,
		ended.Sub(began).Round(100*time.Millisecond), pause.Round(10*time.Millisecond), own.Round(10*time.Millisecond))
	if after == 0 {
		t.Errorf("no traffic from %s to %s in the %s since the fault", f.from, f.to, ended.Sub(began))
	}
	if pause > pauseMost+own {
		t.Errorf("traffic from %s to %s paused for %s, the machine itself for %s", f.from, f.to, pause, own)
	}
}

// longest is the longest time between two answers, or between the last and the end.
func longest(answers []time.Time, ended time.Time) (pause time.Duration) {
	for i, at := range answers {
		next := ended
		if i+1 < len(answers) {
			next = answers[i+1]
		}
		pause = max(pause, next.Sub(at))
	}
	return pause
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
	testcluster.Eventually(t, patience, "a successor of "+old.Name, func() error {
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
	testcluster.Eventually(t, patience, "r4 on another worker", func() error {
		pod, err := l.tryPod(t, "r4")
		if err == nil && (pod.Spec.NodeName == "" || pod.Spec.NodeName == old.Spec.NodeName) {
			err = fmt.Errorf("it is on %q", pod.Spec.NodeName)
		}
		return err
	})
	return touched
}

func setUnschedulable(t *testing.T, l *lab, worker string, yes bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, yes)
	if _, err := l.Typed.CoreV1().Nodes().Patch(context.Background(), worker, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, l *lab, name, container string) []string {
	pod := l.pod(t, name)
	before := map[string]int32{}
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		before[s.Name] = s.RestartCount
	}
	l.KillContainer(t, pod, container)
	testcluster.Eventually(t, patience, container+" of "+name+" to be started again", func() error {
		now, err := l.tryPod(t, name)
		if err != nil {
			return err
		}
		for _, s := range append(now.Status.InitContainerStatuses, now.Status.ContainerStatuses...) {
			if s.Name == container && s.RestartCount == before[container] {
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
