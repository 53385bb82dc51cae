package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

const (
	// newsWithin is how soon c9s status -w prints what has happened, and newsMargin what
	// is allowed on a busy machine.
	newsWithin = time.Second
	newsMargin = 4 * time.Second
)

// watched are the states that c9s status -w has printed, and when.
type watched struct {
	mu     sync.Mutex
	states []state
	at     []time.Time
}

// watch runs c9s status -w until the test ends.
func (l *lab) watch(t *testing.T) *watched {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	cmd := l.command(ctx, append(l.args("status"), "-w", "-o", "json")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &watched{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for in := json.NewDecoder(out); ; {
			var s state
			if err := in.Decode(&s); err != nil {
				if !errors.Is(err, io.EOF) && ctx.Err() == nil {
					t.Errorf("c9s status -w: %v", err)
				}
				return
			}
			w.mu.Lock()
			w.states, w.at = append(w.states, s), append(w.at, time.Now())
			w.mu.Unlock()
		}
	}()
	t.Cleanup(func() { stop(); <-done; _ = cmd.Wait() })
	return w
}

// says waits until the last state that was printed is as wanted, and judges how long after
// the event that was. What was printed before the event is no news of it.
func (w *watched) says(t *testing.T, what string, event time.Time, is func(state) bool) {
	t.Helper()
	var took time.Duration
	testcluster.Eventually(t, patience, what+" in c9s status -w", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, s := range w.states {
			if !w.at[i].Before(event) && is(s) {
				took = w.at[i].Sub(event)
				return nil
			}
		}
		return fmt.Errorf("%d states were printed", len(w.states))
	})
	t.Logf("%s: printed after %s", what, took.Round(time.Millisecond))
	if took > newsWithin+newsMargin {
		t.Errorf("%s was printed after %s, want %s, and %s at most on a busy machine", what, took, newsWithin, newsWithin+newsMargin)
	}
}

// news has things happen to the lab of TestNamespace, and measures when they are printed.
func news(t *testing.T, l *lab) {
	w := l.watch(t)
	testcluster.Eventually(t, patience, "the lab in c9s status -w", func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.states) == 0 || w.states[len(w.states)-1].State != "ready" {
			return fmt.Errorf("%d states were printed", len(w.states))
		}
		return nil
	})
	link := func(s state, node, name string) (up, found bool) {
		for _, k := range s.Links {
			if k.A.Node == node && k.A.Interface == name || k.B.Node == node && k.B.Interface == name {
				return k.Up, true
			}
		}
		return false, false
	}
	// The device's clock is this machine's.
	inA := func(script string) time.Time {
		t.Helper()
		out, err := l.in(t.Context(), "A", "sh", "-c", "date +%s.%N; "+script)
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		seconds, err := strconv.ParseFloat(strings.Fields(out)[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.UnixMicro(int64(seconds * 1e6))
	}
	scale := func(replicas int) time.Time {
		t.Helper()
		began := time.Now()
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		if _, err := l.Typed.AppsV1().Deployments(l.ns).Patch(t.Context(), "b", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		return began
	}
	gone := func() time.Time {
		t.Helper()
		pod := l.pod(t, "b")
		began := time.Now()
		if err := l.Typed.CoreV1().Pods(l.ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			t.Fatal(err)
		}
		return began
	}
	for _, step := range []struct {
		what string
		do   func() time.Time
		is   func(state) bool
	}{
		{"carrier loss", func() time.Time { return inA("ip link set eth1 down") }, func(s state) bool { up, found := link(s, "A", "eth1"); return found && !up }},
		{"carrier", func() time.Time { return inA("ip link set eth1 up") }, func(s state) bool { up, _ := link(s, "A", "eth1"); return up }},
		{"a command's result", func() time.Time { return inA("touch /tmp/go") }, func(s state) bool {
			c := s.node("A").Commands
			return len(c) == 1 && !c[0].Running && c[0].ExitCode == 3
		}},
		{"a Pod that is gone", gone, func(s state) bool { return s.node("B").State != "ready" }},
		{"a link of a Pod that is gone", func() time.Time { l.ready(t); return gone() }, func(s state) bool { up, found := link(s, "B", "eth1"); return found && !up }},
		{"a stop", func() time.Time { l.ready(t); return scale(0) }, func(s state) bool {
			return s.node("B").State == "stopped" || s.node("B").State == "terminating"
		}},
		{"a start", func() time.Time {
			testcluster.Eventually(t, patience, "B to be stopped", func() error {
				s, err := l.tryStatus(t)
				if err == nil && s.node("B").State != "stopped" {
					err = errors.New(s.node("B").State)
				}
				return err
			})
			return scale(1)
		}, func(s state) bool { return s.node("B").State != "stopped" && s.node("B").State != "terminating" }},
	} {
		w.says(t, step.what, step.do(), step.is)
	}
}
