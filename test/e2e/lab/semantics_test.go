package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// written is a lab of files by name, its topology "lab.clab.yml" among them.
func written(t *testing.T, name string, files map[string]string) *lab {
	t.Helper()
	dir := t.TempDir()
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return newLab(t, filepath.Join(dir, "lab.clab.yml"), name)
}

// commands are a node's, as the lab's status has them.
func (l *lab) commands(t *testing.T, node string, args ...string) []command {
	t.Helper()
	n := l.status(t, args...).node(node)
	if n.Name == "" {
		t.Fatalf("no node %s in the status", node)
	}
	return n.Commands
}

// printed waits until a command of a node, known by a part of it, has ended, and
// returns what it printed.
func (l *lab) printed(t *testing.T, node, part string) string {
	t.Helper()
	var out string
	testcluster.Eventually(t, time.Minute, "the end of "+part+" in "+node, func() error {
		for _, c := range l.commands(t, node, "--fresh") {
			if strings.Contains(c.Command, part) && !c.Running {
				out = strings.TrimSpace(c.Output)
				return nil
			}
		}
		return fmt.Errorf("not yet")
	})
	return out
}

// moment is a time that a command of a node printed: date +%s.%N.
func (l *lab) moment(t *testing.T, node, part string) time.Time {
	t.Helper()
	text := l.printed(t, node, part)
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatalf("%s in %s printed %q", part, node, text)
	}
	return time.Unix(0, int64(seconds*1e9))
}

// started is when a node's container started. The kubelet tells whole seconds.
func (l *lab) started(t *testing.T, node, container string) time.Time {
	t.Helper()
	pod := l.pod(t, node)
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if s.Name == container && s.State.Running != nil {
			return s.State.Running.StartedAt.Time
		}
	}
	t.Fatalf("container %s of %s does not run", container, node)
	return time.Time{}
}

const order = `name: order
topology:
  defaults: {kind: linux, image: ghcr.io/srl-labs/network-multitool:latest}
  nodes:
    first:
      healthcheck: {test: [CMD-SHELL, "test -e /tmp/well"], interval: 1, timeout: 2, retries: 1}
      stages:
        configure:
          exec: [{command: "sh -c 'sleep 12; : configured; date +%s.%N'", phase: on-exit}]
      exec: ["sh -c 'sleep 6; touch /tmp/well; date +%s.%N'"]
    created: {stages: {create: {wait-for: [{node: first, stage: create}]}}}
    configured: {stages: {create: {wait-for: [{node: first, stage: configure}]}}}
    healthy: {stages: {create: {wait-for: [{node: first, stage: healthy}]}}}
    linked:
      stages:
        create:
          exec:
            - {command: "sh -c 'ls /sys/class/net; : before'"}
            - {command: "sh -c 'until test -e /sys/class/net/eth1; do sleep 0.1; done; date +%s.%N'"}
        create-links: {wait-for: [{node: first, stage: configure}]}
    inner:
      stages:
        configure:
          wait-for: [{node: first, stage: configure}]
          exec: [{command: "date +%s.%N"}]
    late: {startup-delay: 8}
  links:
    - endpoints: ["linked:eth1", "created:eth1"]
`

// Nodes start when the stages that they wait for are over, whatever Pod and worker
// those are on, and not later.
func TestStartupOrder(t *testing.T) {
	l := written(t, "order", map[string]string{"lab.clab.yml": order})
	l.deploy(t, "--wait=false")
	testcluster.Eventually(t, time.Minute, "the status to say what a node waits for", func() error {
		s := l.status(t, "--fresh")
		if n := s.node("healthy"); n.State != "wiring" || !strings.Contains(n.Reason, "stage healthy of node first is not over") {
			return fmt.Errorf("%+v", s.Nodes)
		}
		return nil
	})
	l.ready(t, 2*time.Minute)
	workers := map[string]bool{}
	for _, n := range l.status(t).Nodes {
		workers[n.Worker] = true
	}
	if len(workers) < 2 {
		t.Errorf("all Pods are on one worker: that shows nothing")
	}
	first := l.started(t, "first", "first")
	configured, well := l.moment(t, "first", ": configured"), l.moment(t, "first", "touch /tmp/well")
	t.Logf("first: configured %s after its start, healthy after %s", configured.Sub(first).Round(time.Second), well.Sub(first).Round(time.Second))
	for _, c := range []struct {
		what      string
		at        time.Time
		from, end time.Time // end is zero for none
	}{
		{"created", l.started(t, "created", "created"), first, configured},
		{"configured", l.started(t, "configured", "configured"), configured, well},
		{"healthy", l.started(t, "healthy", "healthy"), well, time.Time{}},
		{"linked", l.started(t, "linked", "linked"), first.Add(-time.Minute), configured},
		{"eth1 of linked", l.moment(t, "linked", "until test"), configured, well},
		{"inner", l.started(t, "inner", "inner"), first.Add(-time.Minute), configured},
		{"the command in inner", l.moment(t, "inner", "date"), configured, well},
		{"late", l.started(t, "late", "late"), l.started(t, "late", "wire").Add(8*time.Second - time.Second), configured},
	} {
		t.Logf("%s: %s after first", c.what, c.at.Sub(first).Round(100*time.Millisecond))
		if c.at.Before(c.from.Truncate(time.Second)) || !c.end.IsZero() && c.at.After(c.end.Add(time.Second)) {
			t.Errorf("%s began %s after first, want %s to %s", c.what, c.at.Sub(first), c.from.Sub(first), c.end.Sub(first))
		}
	}
	if out := l.printed(t, "linked", ": before"); strings.Contains(out, "eth1") || !strings.Contains(out, "eth0") {
		t.Errorf("interfaces of linked at its start: %s", out)
	}
}

func TestOrderThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct{ old, replacement, want string }{
		"circle":      {"    first:\n      healthcheck", "    first:\n      startup-delay: 1\n      healthcheck", "in a circle"},
		"end of node": {"stage: healthy}]}}}\n    linked", "stage: exit}]}}}\n    linked", "whose container is restarted when it ends"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(order, c.old, c.replacement, 1)
			if name == "circle" {
				text = strings.Replace(text, "      stages:\n        configure:\n          exec: [{command: \"sh", "      stages:\n        create: {wait-for: [{node: healthy, stage: create}]}\n        configure:\n          exec: [{command: \"sh", 1)
			}
			l := written(t, "order", map[string]string{"lab.clab.yml": text})
			l.refused(t, 15*time.Second, []string{c.want, "lab.clab.yml:", "nothing was applied"})
			if _, err := l.Typed.CoreV1().Namespaces().Get(t.Context(), l.ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the namespace was made: %v", err)
			}
		})
	}
}

// What the topology's commands did is in the status, and what failed is told.
func TestCommands(t *testing.T) {
	l := written(t, "commands", map[string]string{"lab.clab.yml": `name: commands
topology:
  nodes:
    A:
      kind: linux
      image: ghcr.io/srl-labs/network-multitool:latest
      exec:
        - hostname
        - sh -c 'echo this is bad >&2; exit 3'
        - no-such-command
        - sh -c 'sleep 600; echo too late'
`})
	out := l.deploy(t)
	for _, want := range []string{"lab commands is ready", "warning: node A (lab.clab.yml:4): ", "failed with exit code 3: this is bad", `"no-such-command" failed with exit code 127`, "1 command still running"} {
		if !strings.Contains(out, want) {
			t.Errorf("deploy does not say %q:\n%s", want, out)
		}
	}
	for _, args := range [][]string{{"--fresh"}, nil} { // asked of the Pod, and of the controller
		testcluster.Eventually(t, 30*time.Second, "the commands in the status", func() error {
			got := l.commands(t, "A", args...)
			want := []command{{Output: "A"}, {ExitCode: 3, Output: "this is bad"}, {ExitCode: 127}, {Running: true}}
			if len(got) != len(want) {
				return fmt.Errorf("%d commands: %+v", len(got), got)
			}
			for i, w := range want {
				if g := got[i]; g.ExitCode != w.ExitCode || g.Running != w.Running || g.Output != w.Output || !g.User || g.Command == "" {
					return fmt.Errorf("command %d is %+v, want %+v", i+1, g, w)
				}
			}
			return nil
		})
	}
	s := l.status(t)
	if s.State != "ready" || s.Nodes[0].Restarts != 0 {
		t.Errorf("the lab is %s, the node has restarted %d times", s.State, s.Nodes[0].Restarts)
	}
	if text := l.c9s(t, "status", "commands", "-n", l.ns); !strings.Contains(text, "failed with exit code 3: this is bad") || strings.Contains(text, `"hostname"`) {
		t.Errorf("c9s status tells what failed, and that alone:\n%s", text)
	}
}

// A node is ready while its healthcheck succeeds.
func TestHealthcheck(t *testing.T) {
	l := written(t, "health", map[string]string{"lab.clab.yml": `name: health
topology:
  defaults: {kind: linux, image: ghcr.io/srl-labs/network-multitool:latest}
  nodes:
    A: {healthcheck: {test: [CMD, test, -e, /tmp/well], interval: 1, timeout: 2, retries: 2, start-period: 60}}
    B: {}
  links:
    - endpoints: ["A:eth1", "B:eth1"]
`})
	l.deploy(t, "--wait=false")
	state := func(want string) func() error {
		return func() error {
			s := l.status(t)
			for name, state := range map[string]string{"A": want, "B": "ready"} {
				if n := s.node(name); n.State != state {
					return fmt.Errorf("%s is %s %s", name, n.State, n.Reason)
				}
			}
			if word := map[string]string{"ready": "ready", "booting": "degraded"}[want]; s.State != word {
				return fmt.Errorf("the lab is %s, want %s", s.State, word)
			}
			return nil
		}
	}
	testcluster.Eventually(t, 90*time.Second, "A to boot and B to be ready", state("booting"))
	began := l.started(t, "a", "a")
	for range 5 { // ten tries of the healthcheck
		time.Sleep(2 * time.Second)
		if err := state("booting")(); err != nil {
			t.Fatalf("%s after A's start: %v", time.Since(began), err)
		}
	}
	for _, step := range []struct{ command, state string }{{"touch", "ready"}, {"rm", "booting"}, {"touch", "ready"}} {
		changed := time.Now()
		if out, err := l.in(t.Context(), "A", step.command, "/tmp/well"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		testcluster.Eventually(t, 30*time.Second, "A to be "+step.state, state(step.state))
		t.Logf("%s: %s after %s", step.command, step.state, time.Since(changed).Round(100*time.Millisecond))
	}
	if n := l.status(t).Nodes[0]; n.Restarts != 0 {
		t.Errorf("A restarted %d times", n.Restarts)
	}
	if out := l.deploy(t); !strings.Contains(out, "is ready") {
		t.Errorf("deploy of the healthy lab:\n%s", out)
	}
}

// Nodes with network-mode container:X are in X's Pod and network, and are nodes all
// the same.
func TestSharedNetwork(t *testing.T) {
	l := written(t, "shared", map[string]string{"lab.clab.yml": `name: shared
topology:
  defaults: {kind: linux, image: ghcr.io/srl-labs/network-multitool:latest}
  nodes:
    R1: {exec: [ip addr add 10.0.0.1/24 dev eth1], entrypoint: "sh -c 'echo I am R1; exec sleep infinity'"}
    Sniffer: {network-mode: "container:R1", exec: [cat /etc/hostname], entrypoint: "sh -c 'echo I am Sniffer; exec sleep infinity'"}
    PC: {exec: [ip addr add 10.0.0.2/24 dev eth1], entrypoint: "sh -c 'echo I am PC; exec sleep infinity'"}
  links:
    - endpoints: ["R1:eth1", "PC:eth1"]
`})
	l.deploy(t)
	s := l.status(t)
	pods := map[string]string{}
	for _, n := range s.Nodes {
		pods[n.Name] = n.PodName
		if n.State != "ready" {
			t.Errorf("node %s is %s", n.Name, n.State)
		}
		if got, err := l.output(t, "logs", n.Name, "-n", l.ns); err != nil || !strings.Contains(string(got), "I am "+n.Name) {
			t.Errorf("c9s logs %s: %q, %v", n.Name, got, err)
		}
	}
	if len(pods) != 3 || pods["R1"] != pods["Sniffer"] || pods["R1"] == pods["PC"] {
		t.Errorf("Pods: %v", pods)
	}
	in := func(node string, argv ...string) string {
		t.Helper()
		out, err := l.in(t.Context(), node, argv...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", node, err, out)
		}
		return out
	}
	namespace := func(node, kind string) string { return in(node, "readlink", "/proc/self/ns/"+kind) }
	if namespace("R1", "net") != namespace("Sniffer", "net") || namespace("R1", "net") == namespace("PC", "net") {
		t.Error("R1 and Sniffer have one network, PC another")
	}
	if namespace("R1", "pid") == namespace("Sniffer", "pid") || namespace("R1", "mnt") == namespace("Sniffer", "mnt") {
		t.Error("R1 and Sniffer share more than the network")
	}
	l.eventually(t, 15*time.Second, "Sniffer", "10.0.0.1/24", "ip", "-4", "addr", "show", "eth1")
	l.reaches(t, 15*time.Second, "Sniffer", "10.0.0.2")
	// What one of them sees, the other does.
	in("Sniffer", "sh", "-c", "tcpdump -ni eth1 -c 3 icmp >/tmp/seen 2>&1 &")
	in("PC", "ping", "-c", "5", "-i", "0.3", "10.0.0.1")
	l.eventually(t, 15*time.Second, "Sniffer", "10.0.0.2 > 10.0.0.1: ICMP echo request", "cat", "/tmp/seen")
	in("R1", "sh", "-c", "nc -l -p 7777 >/tmp/heard 2>/dev/null & sleep 0.5")
	in("Sniffer", "sh", "-c", "echo hello | nc -w 1 127.0.0.1 7777 || true")
	l.eventually(t, 15*time.Second, "R1", "hello", "cat", "/tmp/heard")
	// By label, all, and a restart of one, which is one of both.
	if out := l.c9s(t, "exec", "--all", "-n", l.ns, "--lab", "shared", "--", "true"); strings.Count(out, "exit code 0") != 3 {
		t.Errorf("exec in all nodes:\n%s", out)
	}
	old := l.pod(t, "r1")
	l.c9s(t, "restart", "Sniffer", "-n", l.ns)
	if now := l.pod(t, "r1"); now.UID == old.UID {
		t.Error("the Pod was not replaced")
	}
	l.ready(t, time.Minute)
	l.reaches(t, 30*time.Second, "Sniffer", "10.0.0.2")
}
