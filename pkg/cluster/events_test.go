package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// device is a Pod whose container has a state: "" for none yet, else ID, then "ready" or an
// exit code.
func device(states ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name = "r1-abc"
	for _, text := range states {
		id, word, _ := strings.Cut(text, " ")
		s := corev1.ContainerStatus{Name: "r1", ContainerID: "containerd://" + id}
		var code int32
		if n, err := fmt.Sscanf(word, "exit %d", &code); n == 1 && err == nil {
			s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: code}
		} else {
			s.State.Running, s.Ready = &corev1.ContainerStateRunning{}, word == "ready"
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, s)
	}
	return pod
}

func nodeR1() Container {
	return NewContainer(Found{Name: "demo", Namespace: "ns"}, Node{Name: "R1", Deployment: "r1", Containers: []string{"r1"}, Kind: "linux"}, "demo.clab.yml:3",
		contract.Directory{Nodes: []contract.DirectoryNode{{Name: "R1", Names: []string{"R1", "clab-demo-R1", "R1.demo.io"}}}}, nil)
}

func TestContainerEvents(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *corev1.Pod
		want          string
	}{
		"a new Pod":          {nil, device(), "create"},
		"a Pod that runs":    {nil, device("a"), "create a, start a"},
		"it starts":          {device(), device("a"), "start a"},
		"it becomes ready":   {device("a"), device("a ready"), "health_status: healthy a"},
		"it is ready at one": {device(), device("a ready"), "start a, health_status: healthy a"},
		"it is not ready":    {device("a ready"), device("a"), "health_status: unhealthy a"},
		"it ends":            {device("a ready"), device("a exit 3"), "die a 3"},
		"it starts again":    {device("a exit 3"), device("b"), "start b"},
		"another runs":       {device("a"), device("b"), "die a, start b"},
		"nothing":            {device("a"), device("a"), ""},
	} {
		var got []string
		for _, e := range containerEvents(nodeR1(), c.before, c.after) {
			text := e.Action
			if len(e.Container.ID) < 10 {
				text += " " + e.Container.ID
			}
			if e.ExitCode != 0 {
				text += fmt.Sprintf(" %d", e.ExitCode)
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: got %q, want %q", name, text, c.want)
		}
	}
}

func TestContainerNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"R1", "clab-demo-R1", "R1.demo.io"}, "clab-demo-R1"},
		{[]string{"R1", "mine-demo-R1"}, "mine-demo-R1"},
		{[]string{"R1", "alias"}, "R1"},
		{nil, "clab-demo-R1"},
	} {
		if got := longName("demo", "R1", c.names); got != c.want {
			t.Errorf("%q: %s, want %s", c.names, got, c.want)
		}
	}
	if a := nodeR1(); a.LongName != "clab-demo-R1" || len(a.ID) != 64 || a.Source != "demo.clab.yml" || a.Word() != "exited" {
		t.Errorf("%+v is %s", a, a.Word())
	}
}

// Rates follow from the counters before.
func TestInterfaceEvents(t *testing.T) {
	f := &interfaceEventsOf{counters: map[int]contract.InterfaceEvent{}}
	links := &contract.Links{Interfaces: []contract.Interface{{Name: "eth1", Node: "R1", Alias: "ge-0/0/0"}}}
	at := time.Unix(1000, 0)
	line := func(action string, after time.Duration, bytes uint64) contract.InterfaceEvent {
		return contract.InterfaceEvent{Time: at.Add(after), Action: action, Interface: contract.InterfaceFacts{Name: "eth1", Index: 3, Counters: contract.InterfaceCounters{RxBytes: bytes}}}
	}
	for _, c := range []struct {
		line     contract.InterfaceEvent
		ok       bool
		interval time.Duration
		before   uint64
	}{
		{line(contract.ActionStats, 0, 10), false, 0, 0}, // there is nothing to compare with
		{line(contract.ActionStats, time.Second, 30), true, time.Second, 10},
		{line(contract.ActionUpdate, time.Second, 40), true, 0, 0},
		{line(contract.ActionStats, 3*time.Second, 70), true, 2 * time.Second, 30},
		{contract.InterfaceEvent{Action: contract.ActionKnown}, false, 0, 0},
		{line(contract.ActionDelete, 4*time.Second, 0), true, 0, 0},
		{line(contract.ActionStats, 5*time.Second, 5), false, 0, 0},
	} {
		e, ok := f.event(nodeR1(), links, c.line)
		f.remember(c.line)
		if ok != c.ok || ok && (e.Interval != c.interval || e.Before.RxBytes != c.before || e.Declared == nil || e.Declared.Alias != "ge-0/0/0") {
			t.Errorf("%+v: %+v, %v", c.line, e, ok)
		}
	}
}
