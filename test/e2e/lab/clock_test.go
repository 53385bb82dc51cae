package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// clockEnv has TestClockOff run.
const clockEnv = "C9S_CLOCK_OFF"

// A and C are on the worker whose clock is off, B and D are not.
const clockLab = `name: clock
topology:
  defaults: {kind: linux, image: "ghcr.io/srl-labs/network-multitool:latest"}
  nodes:
    A:
      exec: [ip addr add 10.9.0.1/24 dev eth1, hostname]
      certificate: {issue: true}
    B: {exec: [ip addr add 10.9.0.2/24 dev eth1]}
    C: {exec: [ip addr add 10.9.1.3/24 dev eth1]}
    D: {exec: [ip addr add 10.9.1.4/24 dev eth1]}
  links:
    - endpoints: ["A:eth1", "B:eth1"]
    - endpoints: ["C:eth1", "D:eth1"]
    - endpoints: ["A:eth2", "C:eth2"]
`

// controllers selects the Pods of a lab's controller.
var controllers = metav1.ListOptions{LabelSelector: "c9s.dev/component=controller"}

const clockPolicy = `apiVersion: c9s.dev/v1
kind: Policy
profiles:
  - name: off
    match: {names: [A, C]}
    set: {nodeSelector: {kubernetes.io/hostname: OFF}}
  - name: right
    match: {names: [B, D]}
    set: {nodeSelector: {kubernetes.io/hostname: RIGHT}}
`

// A worker's clock is ten minutes ahead, or behind, for all that goes by it: its kubelet,
// containerd, and c9s in its Pods. The lab is as any other, and doctor names the worker.
func TestClockOff(t *testing.T) {
	if os.Getenv(clockEnv) == "" {
		t.Skip("builds the kubelet and containerd a second time, which takes minutes: make e2e-clock")
	}
	image := clockedImage(t, testcluster.Shared(t))
	for _, off := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		t.Run(off.String(), func(t *testing.T) { clockOff(t, image, off) })
	}
}

// clockedImage is the image of c9s, its programs built so that they go by the clock of
// their worker.
func clockedImage(t *testing.T, c *testcluster.Cluster) string {
	t.Helper()
	dir, name := t.TempDir(), c9sImage+"-clock"
	// c9s builds without the caller's GOFLAGS, but with Go's own settings.
	settings := filepath.Join(dir, "env")
	if err := os.WriteFile(settings, []byte("GOFLAGS=-overlay="+testcluster.ClockOverlay(t)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), program, "image", "build", name, "--platform", "linux/amd64", "-o", filepath.Join(dir, "image"))
	build.Dir, build.Env = repo, append(os.Environ(), "GOENV="+settings)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.Load(t, filepath.Join(dir, "image")+"="+name)
	return name
}

func clockOff(t *testing.T, image string, off time.Duration) {
	l := written(t, "clock", map[string]string{"lab.clab.yml": clockLab})
	l.allWorkers(t)
	right, wrong := l.Workers[0], l.Workers[1]
	policy := strings.NewReplacer("OFF", wrong, "RIGHT", right).Replace(clockPolicy)
	if err := os.WriteFile(filepath.Join(filepath.Dir(l.topo), "c9s.yaml"), []byte(policy), 0o644); err != nil {
		t.Fatal(err)
	}
	l.SetClock(t, wrong, off)

	first := time.Now()
	l.deploy(t, "--image", image)
	t.Logf("deployed in %s", time.Since(first).Round(100*time.Millisecond))
	for node, want := range map[string]time.Duration{"a": off, "b": 0} {
		if got := l.clockOf(t, node); (got - want).Abs() > 5*time.Minute {
			t.Fatalf("the clock of %s's sidecar is off by about %s, want %s", node, got, want)
		}
	}
	l.clockWorks(t, first)
	if ran, err := l.commands(t, "A"); err != nil || len(ran) != 2 || slices.ContainsFunc(ran, func(c command) bool { return c.Running || c.ExitCode != 0 }) {
		t.Errorf("the commands of A: %+v, %v", ran, err)
	}
	l.clockCertificate(t, off)
	l.clockDoctor(t, wrong, off)

	for _, change := range []struct {
		name    string
		touched []string // what may restart; all else must not
		do      func()
	}{
		{"link added", nil, func() {
			if err := os.WriteFile(l.topo, []byte(clockLab+"    - endpoints: [\"A:eth3\", \"B:eth3\"]\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			l.deploy(t, "--image", image)
			l.eventually(t, "A", "LOWER_UP", "ip", "link", "show", "eth3")
			l.eventually(t, "B", "LOWER_UP", "ip", "link", "show", "eth3")
		}},
		{"node restarted", []string{"a"}, func() { l.c9s(t, "restart", "A", "-n", l.ns) }},
		{"node stopped and started", []string{"a"}, func() {
			l.c9s(t, "stop", "A", "-n", l.ns)
			l.c9s(t, "start", "A", "-n", l.ns)
		}},
		{"sidecar killed on the worker", []string{"a"}, func() { kill(t, l, "a", "wire") }},
		{"sidecar killed at the other end", []string{"b"}, func() { kill(t, l, "b", "wire") }},
		{"controller moved to the worker", nil, func() { l.controllerTo(t, wrong) }},
		{"controller moved away from it", nil, func() { l.controllerTo(t, right) }},
		// It takes a boot of the worker here: time steps for its Pods, and what their
		// sidecars have noted is of before. Where the clock was ahead, the kubelet takes
		// containers of before for the latest, and repeats their start until time has
		// caught up; the status names the remedy.
		{"clock set right", []string{"a", "c"}, func() {
			l.SetClock(t, wrong, 0)
			if off < 0 {
				return
			}
			testcluster.Eventually(t, patience, "the kubelet to repeat the start of a container", func() error {
				if s := l.status(t, "--fresh"); !strings.Contains(s.node("A").Reason, "c9s restart") {
					return fmt.Errorf("A is %s: %s", s.node("A").State, s.node("A").Reason)
				}
				return nil
			})
			l.c9s(t, "restart", "A", "C", "-n", l.ns)
		}},
	} {
		before, began := restarts(t, l), time.Now()
		change.do()
		l.clockWorks(t, first)
		t.Logf("%s: all is well after %s", change.name, time.Since(began).Round(100*time.Millisecond))
		after := restarts(t, l)
		for name, was := range before {
			if after[name] != was && !slices.Contains(change.touched, name) {
				t.Errorf("%s: %s restarted as well: it was %s and is %s", change.name, name, was, after[name])
			}
		}
		list, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), controllers)
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range list.Items {
			if s := pod.Status.ContainerStatuses; len(s) != 1 || s[0].RestartCount > 0 {
				t.Errorf("%s: the controller: %+v", change.name, s)
			}
		}
	}
	if !t.Failed() {
		l.destroyed(t)
	}
}

// clockOf is by how much a node's sidecar began later than its Pod, by their own clocks.
func (l *lab) clockOf(t *testing.T, node string) time.Duration {
	t.Helper()
	pod := l.pod(t, node)
	data, err := l.Typed.CoreV1().Pods(l.ns).ProxyGet("http", pod.Name, "14802", "status", nil).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var s struct{ Started time.Time }
	if err := json.Unmarshal(data, &s); err != nil || s.Started.IsZero() {
		t.Fatalf("%v: %s", err, data)
	}
	return s.Started.Sub(pod.CreationTimestamp.Time)
}

// clockWorks waits until the lab works, and until what is said of it is true: nothing is
// old, in the future, or of before the lab.
func (l *lab) clockWorks(t *testing.T, first time.Time) {
	t.Helper()
	l.ready(t)
	for from, to := range map[string]string{"A": "10.9.0.2", "B": "10.9.0.1", "C": "10.9.1.4", "D": "C"} {
		l.reaches(t, from, to)
	}
	const margin = 5 * time.Second // stamps have whole seconds
	testcluster.Eventually(t, patience, "a status that is true", func() error {
		data, err := l.output(t, append(l.args("status"), "-o", "json")...)
		if err != nil {
			return err
		}
		var s struct {
			State, Source string
			Nodes         []struct {
				Name    string
				Started time.Time
				Age     *float64 `json:"ageSeconds"`
			}
		}
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		if s.State != "ready" || s.Source == "pods" || len(s.Nodes) != 4 {
			return fmt.Errorf("the controller says: %s", data)
		}
		for _, n := range s.Nodes {
			if n.Started.Before(first.Add(-margin)) || n.Started.After(time.Now().Add(margin)) {
				return fmt.Errorf("%s started at %s, and the lab is of %s", n.Name, n.Started, first)
			}
			if n.Age != nil && *n.Age < 0 {
				return fmt.Errorf("what is said of %s is %f s old", n.Name, *n.Age)
			}
		}
		text, err := l.output(t, append(l.args("status"), "-o", "wide")...)
		if err != nil {
			return err
		}
		for _, lie := range []string{"<invalid>", " ago)", "unknown", "from the Pods"} {
			if strings.Contains(string(text), lie) {
				return fmt.Errorf("%q in the status:\n%s", lie, text)
			}
		}
		return nil
	})
}

// clockCertificate checks that A's certificate is valid by its own clock too.
func (l *lab) clockCertificate(t *testing.T, off time.Duration) {
	t.Helper()
	secret := func(name string) *corev1.Secret {
		s, err := l.Typed.CoreV1().Secrets(l.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	node := secret("a-tls")
	leaf := verify(t, secret("c9s-ca").Data["tls.crt"], node.Data["tls.crt"], node.Data["tls.key"], "A")
	if there := time.Now().Add(off); there.Before(leaf.NotBefore) || there.After(leaf.NotAfter) {
		t.Errorf("A's certificate is valid from %s to %s, and there it is %s", leaf.NotBefore, leaf.NotAfter, there)
	}
}

// clockDoctor checks that doctor names the worker whose clock is off, and no other.
func (l *lab) clockDoctor(t *testing.T, worker string, off time.Duration) {
	t.Helper()
	checks := l.doctor(t, l.topo)
	way := map[bool]string{true: "ahead", false: "behind"}[off > 0]
	for _, c := range checks {
		if c.Name == "clocks" {
			if c.Result != "warning" || !strings.Contains(c.Found, worker+" is about ") || !strings.HasSuffix(c.Found, way) || strings.Count(c.Found, "is about") != 1 {
				t.Errorf("doctor of clocks: %+v", c)
			}
			t.Logf("doctor: %s", c.Found)
			return
		}
	}
	t.Errorf("doctor says nothing of clocks:\n%+v", checks)
}

// controllerTo has the lab's controller run on a worker, and waits until it leads.
func (l *lab) controllerTo(t *testing.T, worker string) {
	t.Helper()
	for _, other := range l.Workers {
		if other != worker {
			setUnschedulable(t, l, other, true)
			defer setUnschedulable(t, l, other, false)
		}
	}
	if err := l.Typed.CoreV1().Pods(l.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, controllers); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	testcluster.Eventually(t, patience, "a controller on "+worker+" that leads", func() error {
		lease, err := l.Typed.CoordinationV1().Leases(l.ns).Get(t.Context(), "c9s-controller", metav1.GetOptions{})
		if err != nil {
			return err
		}
		list, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), controllers)
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if holder := lease.Spec.HolderIdentity; holder != nil && pod.Spec.NodeName == worker && pod.DeletionTimestamp == nil && strings.HasPrefix(*holder, pod.Name) {
				return nil
			}
		}
		return fmt.Errorf("%d Pods, lease %+v", len(list.Items), lease.Spec)
	})
	t.Logf("the controller on %s leads after %s", worker, time.Since(began).Round(100*time.Millisecond))
}
