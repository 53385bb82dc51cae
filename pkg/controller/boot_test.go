package controller

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// TestTurns: turns go by the order in which Pods were ready to boot, for each worker alone.
func TestTurns(t *testing.T) {
	now := time.Unix(10_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	var all []*corev1.Pod
	answers := map[string]status.Answer{}
	granted := map[types.UID]time.Time{}
	add := func(name, worker string, b api.Boot, change func(*corev1.Pod)) {
		p := pods()[0]
		p.Name, p.UID, p.Spec.NodeName = name, types.UID(name), worker
		p.Labels = map[string]string{contract.LabelPod: name}
		if change != nil {
			change(p)
		}
		b.PerWorker = 2
		all = append(all, p)
		answers[name] = status.Answer{Status: api.Status{Boot: &b}}
	}
	state := func(s corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{s} }
	}
	add("c", "n1", api.Boot{Since: ago(3 * time.Second)}, nil)
	add("b", "n1", api.Boot{Since: ago(4 * time.Second)}, nil)
	add("d", "n1", api.Boot{Since: ago(3 * time.Second)}, nil)
	add("boots", "n1", api.Boot{Since: ago(time.Minute), Began: ago(time.Minute)}, nil)
	add("late", "n1", api.Boot{Began: ago(bootMost)}, nil)
	add("ready", "n1", api.Boot{Began: ago(time.Minute)}, state(corev1.ContainerStatus{Ready: true}))
	add("crashed", "n1", api.Boot{Began: ago(time.Minute)}, state(corev1.ContainerStatus{RestartCount: 1}))
	add("ended", "n1", api.Boot{Began: ago(time.Minute)}, state(corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}))
	add("not yet", "n1", api.Boot{}, nil)
	add("other", "n2", api.Boot{Since: ago(time.Second)}, nil)
	add("granted", "n3", api.Boot{Since: ago(time.Second)}, nil)
	granted["granted"] = ago(time.Second)
	add("second", "n3", api.Boot{Since: ago(time.Second)}, nil)
	add("third", "n3", api.Boot{Since: now}, nil)
	all = append(all, pods()[3]) // of a lab without a limit, or silent
	var got []string
	for _, w := range turns(all, answers, granted, now) {
		got = append(got, fmt.Sprintf("%s %d", w.pod.Name, w.ahead))
	}
	slices.Sort(got)
	if want := "b 0, c 1, d 2, other 0, second 0, third 1"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

// TestBooter: a Pod gets its turn once, and another one if the sidecar does not answer.
func TestBooter(t *testing.T) {
	all := pods()[:3]
	answers := map[string]status.Answer{}
	now := time.Now()
	for i, p := range all {
		answers[p.Labels[contract.LabelPod]] = status.Answer{Status: api.Status{Boot: &api.Boot{PerWorker: 1, Since: now.Add(time.Duration(i) * time.Second)}}}
	}
	var mu sync.Mutex
	var told []string
	var group sync.WaitGroup
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf(format, args...))
		group.Done()
	}
	b := newBooter()
	broken := true
	b.turn = func(_ context.Context, at netip.Addr) error {
		defer note("turn %s", at)
		if broken {
			return fmt.Errorf("no answer")
		}
		return nil
	}
	b.ahead = func(_ context.Context, at netip.Addr, n int) error { note("%s waits behind %d", at, n); return nil }
	look := func(calls int, want string) {
		t.Helper()
		told = nil
		group.Add(calls)
		b.look(t.Context(), all, answers, now)
		group.Wait()
		slices.Sort(told)
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
	}
	look(3, "10.0.0.2 waits behind 1, 10.0.0.3 waits behind 2, turn 10.0.0.1")
	deadline := time.Now().Add(10 * time.Second)
	for left := 1; left > 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		b.mu.Lock()
		left = len(b.granted)
		b.mu.Unlock()
	}
	broken = false
	look(1, "turn 10.0.0.1") // the others were told a moment ago
	look(0, "")
	now = now.Add(aheadEvery)
	look(2, "10.0.0.2 waits behind 1, 10.0.0.3 waits behind 2")
	now = now.Add(grantStands)
	look(3, "10.0.0.2 waits behind 1, 10.0.0.3 waits behind 2, turn 10.0.0.1") // it was never confirmed
}
