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
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return newLab(t, filepath.Join(dir, "lab.clab.yml"), name)
}

// commands are a node's, as the lab's status has them.
func (l *lab) commands(t *testing.T, node string, args ...string) ([]command, error) {
	t.Helper()
	s, err := l.tryStatus(t, args...)
	n := s.node(node)
	if err == nil && n.Name == "" {
		err = fmt.Errorf("no node %s in the status", node)
	}
	return n.Commands, err
}

// ended reports whether a command of a node, known by a part of it, has ended.
func (s state) ended(node, part string) bool {
	for _, c := range s.node(node).Commands {
		if strings.Contains(c.Command, part) {
			return !c.Running
		}
	}
	return false
}

// printed waits until a command of a node, known by a part of it, has ended, and
// returns what it printed.
func (l *lab) printed(t *testing.T, node, part string) string {
	t.Helper()
	var out string
	testcluster.Eventually(t, patience, "the end of "+part+" in "+node, func() error {
		commands, err := l.commands(t, node, "--fresh")
		if err != nil {
			return err
		}
		for _, c := range commands {
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

// started is when a node's container started. The kubelet says whole seconds.
func (l *lab) started(t *testing.T, node, container string) time.Time {
	t.Helper()
	at, err := l.tryStarted(t, node, container)
	if err == nil && at.IsZero() {
		err = fmt.Errorf("container %s of %s does not run", container, node)
	}
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// tryStarted is started for those who ask again; zero for a container that does not
// run.
func (l *lab) tryStarted(t *testing.T, node, container string) (at time.Time, err error) {
	t.Helper()
	pod, err := l.tryPod(t, node)
	if err != nil {
		return at, err
	}
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if s.Name == container && s.State.Running != nil {
			return s.State.Running.StartedAt.Time, nil
		}
	}
	return at, nil
}

// In order, first is configured once the test opens gate, and healthy once the test
// makes it well.
const order = `name: order
topology:
  defaults: {kind: linux, image: ghcr.io/srl-labs/network-multitool:latest}
  nodes:
    gate:
      healthcheck: {test: [CMD-SHELL, "test -e /tmp/open"], interval: 1, timeout: 10, retries: 1}
    first:
      healthcheck: {test: [CMD-SHELL, "test -e /tmp/well"], interval: 1, timeout: 10, retries: 1}
      stages:
        configure:
          wait-for: [{node: gate, stage: healthy}]
          exec: [{command: "sh -c ': configured; date +%s.%N'", phase: on-exit}]
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
	l.allWorkers(t)
	l.deploy(t, "--wait=false")
	// runs says what of yes has not started, or of no does not yet wait for its stage of
	// first. What of no has started did so too early.
	runs := func(s state, yes []string, no map[string]string) error {
		for _, node := range yes {
			if at, err := l.tryStarted(t, node, node); err != nil || at.IsZero() {
				return fmt.Errorf("%s has not started: %s %s (%v)", node, s.node(node).State, s.node(node).Reason, err)
			}
		}
		for node, stage := range no {
			at, err := l.tryStarted(t, node, node)
			if err != nil {
				return err
			}
			if !at.IsZero() {
				t.Fatalf("%s started at %s, before the end of %s of first", node, at, stage)
			}
			if n := s.node(node); n.State != "wiring" || !strings.Contains(n.Reason, stage+" of node first is not over") {
				return fmt.Errorf("%s is %s %s, and should wait for %s", node, n.State, n.Reason, stage)
			}
		}
		return nil
	}
	do := func(node, command string) {
		t.Helper()
		testcluster.Eventually(t, patience, command+" in "+node, func() error {
			_, err := l.in(t.Context(), node, "sh", "-c", command)
			return err
		})
	}

	// While first is not configured.
	testcluster.Eventually(t, patience, "all to start that waits for less than first's configuration", func() error {
		s, err := l.tryStatus(t, "--fresh")
		if err == nil {
			err = runs(s, []string{"gate", "first", "created", "linked", "inner", "late"}, map[string]string{"configured": "stage configure", "healthy": "stage healthy"})
		}
		if err == nil && !s.ended("linked", ": before") {
			err = fmt.Errorf("the first command in linked has not ended: %+v", s.node("linked"))
		}
		if s.ended("linked", "until test") || s.ended("inner", "date") {
			t.Fatalf("links or commands came before first was configured: %+v", s.Nodes)
		}
		return err
	})
	opened := time.Now()
	do("gate", "touch /tmp/open")

	// While it is configured and not healthy.
	testcluster.Eventually(t, patience, "all to start that waits for first's configuration", func() error {
		s, err := l.tryStatus(t, "--fresh")
		if err == nil {
			err = runs(s, []string{"configured"}, map[string]string{"healthy": "stage healthy"})
		}
		if err == nil && (!s.ended("linked", "until test") || !s.ended("inner", "date")) {
			err = fmt.Errorf("links or commands have not come: %+v", s.Nodes)
		}
		return err
	})
	well := time.Now()
	do("first", "touch /tmp/well")

	l.ready(t)
	workers := map[string]bool{}
	for _, n := range l.status(t).Nodes {
		workers[n.Worker] = true
	}
	if len(workers) < 2 {
		t.Errorf("all Pods are on one worker: that shows nothing")
	}
	first, configured := l.started(t, "first", "first"), l.moment(t, "first", ": configured")
	for _, c := range []struct {
		what     string
		at, from time.Time
	}{
		{"created", l.started(t, "created", "created"), first},
		{"the configuration of first", configured, opened},
		{"configured", l.started(t, "configured", "configured"), configured},
		{"healthy", l.started(t, "healthy", "healthy"), well},
		{"eth1 of linked", l.moment(t, "linked", "until test"), configured},
		{"the command in inner", l.moment(t, "inner", "date"), configured},
		{"late", l.started(t, "late", "late"), l.started(t, "late", "wire").Add(8*time.Second - time.Second)},
	} {
		t.Logf("%s: %s after first, %s after what it waited for", c.what, c.at.Sub(first).Round(100*time.Millisecond), c.at.Sub(c.from).Round(100*time.Millisecond))
		if c.at.Before(c.from.Truncate(time.Second)) {
			t.Errorf("%s began %s after first, want %s at least", c.what, c.at.Sub(first), c.from.Sub(first))
		}
	}
	if out := l.printed(t, "linked", ": before"); strings.Contains(out, "eth1") || !strings.Contains(out, "eth0") {
		t.Errorf("interfaces of linked at its start: %s", out)
	}
}

func TestOrderThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct{ old, replacement, want string }{
		"circle":      {"    first:\n      healthcheck", "    first:\n      startup-delay: 1\n      healthcheck", "in a cycle"},
		"end of node": {"stage: healthy}]}}}\n    linked", "stage: exit}]}}}\n    linked", "its container is restarted when it exits"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(order, c.old, c.replacement, 1)
			if name == "circle" {
				text = strings.Replace(text, "      stages:\n        configure:\n          wait-for: [{node: gate", "      stages:\n        create: {wait-for: [{node: healthy, stage: create}]}\n        configure:\n          wait-for: [{node: gate", 1)
			}
			l := written(t, "order", map[string]string{"lab.clab.yml": text})
			l.refused(t, []string{c.want, "lab.clab.yml:", "nothing was applied"})
			if _, err := l.Typed.CoreV1().Namespaces().Get(t.Context(), l.ns, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the namespace was made: %v", err)
			}
		})
	}
}

// What the topology's commands did is in the status, and what failed is reported.
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
	// deploy says how the commands stand when the lab is ready; to deploy again changes
	// nothing, and reports those that have ended since.
	if out := l.deploy(t); !strings.Contains(out, "lab commands is ready") {
		t.Errorf("deploy printed\n%s", out)
	}
	testcluster.Eventually(t, patience, "all to have ended but one", func() error {
		commands, err := l.commands(t, "A", "--fresh")
		if err == nil && (len(commands) != 4 || commands[0].Running || commands[1].Running || commands[2].Running) {
			err = fmt.Errorf("%+v", commands)
		}
		return err
	})
	before := restarts(t, l)
	out := l.deploy(t)
	for _, want := range []string{"lab commands is ready", "warning: node A (lab.clab.yml:4): ", "failed with exit code 3: this is bad", `"no-such-command" failed with exit code 127`, "1 command still running"} {
		if !strings.Contains(out, want) {
			t.Errorf("deploy does not say %q:\n%s", want, out)
		}
	}
	for _, args := range [][]string{{"--fresh"}, nil} { // asked of the Pod, and of the controller
		testcluster.Eventually(t, patience, "the commands in the status", func() error {
			got, err := l.commands(t, "A", args...)
			if err != nil {
				return err
			}
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
	l.ready(t)
	if now := restarts(t, l); now["a"] != before["a"] {
		t.Errorf("the node has restarted: %s, then %s", before["a"], now["a"])
	}
	if n := l.status(t).node("A"); n.Restarts != 0 {
		t.Errorf("the node has restarted %d times", n.Restarts)
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
    A: {healthcheck: {test: [CMD, test, -e, /tmp/well], interval: 1, timeout: 10, retries: 2, start-period: 60}}
    B: {}
  links:
    - endpoints: ["A:eth1", "B:eth1"]
`})
	l.deploy(t, "--wait=false")
	// A node that was not ready yet is deployed; one that was is degraded.
	state := func(node, lab string) func() error {
		return func() error {
			s, err := l.tryStatus(t)
			if err != nil {
				return err
			}
			for name, state := range map[string]string{"A": node, "B": "ready"} {
				if n := s.node(name); n.State != state {
					return fmt.Errorf("%s is %s %s", name, n.State, n.Reason)
				}
			}
			if s.State != lab {
				return fmt.Errorf("the lab is %s, want %s", s.State, lab)
			}
			return nil
		}
	}
	testcluster.Eventually(t, patience, "A to boot and B to be ready", state("booting", "deploying"))
	began := l.started(t, "a", "a")
	for range 5 { // ten tries of the healthcheck
		time.Sleep(2 * time.Second)
		s, err := l.tryStatus(t)
		if n := s.node("A"); err == nil && (n.State != "booting" || s.State == "ready") {
			t.Fatalf("%s after A's start it is %s %s, the lab %s", time.Since(began), n.State, n.Reason, s.State)
		}
	}
	for _, step := range []struct{ command, state string }{{"touch", "ready"}, {"rm", "degraded"}, {"touch", "ready"}} {
		changed := time.Now()
		if out, err := l.in(t.Context(), "A", step.command, "/tmp/well"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		testcluster.Eventually(t, patience, "A to be "+step.state, state(step.state, step.state))
		t.Logf("%s: %s after %s", step.command, step.state, time.Since(changed).Round(100*time.Millisecond))
	}
	if n := l.status(t).node("A"); n.Restarts != 0 {
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
	l.eventually(t, "Sniffer", "10.0.0.1/24", "ip", "-4", "addr", "show", "eth1")
	l.reaches(t, "Sniffer", "10.0.0.2")
	// What one of them sees, the other does.
	in("PC", "sh", "-c", "ping 10.0.0.1 >/dev/null 2>&1 &")
	in("Sniffer", "sh", "-c", "tcpdump -lni eth1 -c 3 icmp >/tmp/seen 2>&1 &")
	l.eventually(t, "Sniffer", "10.0.0.2 > 10.0.0.1: ICMP echo request", "cat", "/tmp/seen")
	in("R1", "sh", "-c", "until grep -q hello /tmp/heard 2>/dev/null; do nc -l -p 7777 >>/tmp/heard 2>/dev/null; sleep 0.1; done >/dev/null 2>&1 &")
	testcluster.Eventually(t, patience, "R1 to hear what Sniffer says to 127.0.0.1", func() error {
		if out, err := l.in(t.Context(), "Sniffer", "sh", "-c", "echo hello | nc -w 1 127.0.0.1 7777 || true"); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		out, err := l.in(t.Context(), "R1", "cat", "/tmp/heard")
		if err == nil && !strings.Contains(out, "hello") {
			err = fmt.Errorf("it heard %q", out)
		}
		return err
	})
	// By label, all, and a restart of one, which is one of both.
	if out := l.c9s(t, "exec", "--all", "-n", l.ns, "--lab", "shared", "--", "true"); strings.Count(out, "exit code 0") != 3 {
		t.Errorf("exec in all nodes:\n%s", out)
	}
	old := l.pod(t, "r1")
	l.c9s(t, "restart", "Sniffer", "-n", l.ns)
	if now := l.pod(t, "r1"); now.UID == old.UID {
		t.Error("the Pod was not replaced")
	}
	l.ready(t)
	l.reaches(t, "Sniffer", "10.0.0.2")
}
