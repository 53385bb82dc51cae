//go:build !nocluster

package cli

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a follower of a log says about the next run of the container.
func TestRestarted(t *testing.T) {
	pod := func(uid types.UID, restarts int32, running bool) *corev1.Pod {
		s := corev1.ContainerStatus{Name: "r1", RestartCount: restarts}
		if running {
			s.State.Running = &corev1.ContainerStateRunning{}
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}}}
	}
	first, runs := instanceOf(pod("a", 0, true), "r1")
	if !runs {
		t.Error("a container that runs does not")
	}
	for want, next := range map[string]*corev1.Pod{
		"R1: the container restarted (restart 2)":                  pod("a", 2, true),
		"R1: the Pod was replaced; this is the log of the new one": pod("b", 0, true),
	} {
		now, runs := instanceOf(next, "r1")
		if got := restarted("R1", first, now); got != want || !runs {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if _, runs := instanceOf(pod("a", 0, false), "r1"); runs {
		t.Error("a container that waits runs")
	}
	if _, runs := instanceOf(pod("a", 0, true), "wire"); runs {
		t.Error("a container without a status runs")
	}
}

// What is missing on exec's command line.
func TestExecUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"exec", "R1"}, "Error: missing command; usage: c9s exec NODE -- COMMAND [ARG...]\n"},
		{[]string{"exec", "R1", "--"}, "Error: missing command; usage: c9s exec NODE -- COMMAND [ARG...]\n"},
		{[]string{"exec", "R1", "ls"}, "Error: missing -- before the command; usage: c9s exec NODE -- COMMAND [ARG...]\n"},
	} {
		if _, errs, code := run(t, c.args...); code != ExitUsage || errs != c.want+"Run 'c9s exec --help' for usage.\n" {
			t.Errorf("%q: %d, %s", c.args, code, errs)
		}
	}
}
