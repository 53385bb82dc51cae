package lab

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// scaleNodes is the size of the lab, unless SCALE says another.
const scaleNodes = 200

// controllerMemory is the most that the controller may take for 200 nodes, MiB
// resident.
const controllerMemory = 60

// placement sends the nodes to simulated workers. The controller goes where all nodes may: nothing
// of the tolerations holds for all, so it stays on the real worker.
const placement = `apiVersion: c9s.dev/v1
kind: Policy
profiles:
  - name: simulated
    set: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: type, operator: In, values: [kwok]}]}]}}}}
  - name: first
    match: {names: [n0]}
    set: {tolerations: [{operator: Exists}]}
  - name: others
    match: {expression: node.name != "n0"}
    set: {tolerations: [{key: kwok.x-k8s.io/node, operator: Exists, effect: NoSchedule}]}
`

// What a large lab costs: time, writes, and memory of the controller and the
// command. Workers are simulated (kwok), and so are the sidecars, which answer as
// real ones do; API server, controller and command are real. SCALE=1000 takes
// another number of nodes.
func TestScale(t *testing.T) {
	long(t)
	n := scaleNodes
	if text := os.Getenv("SCALE"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n <= 2*farther {
			t.Fatalf("SCALE=%s: a number of nodes above %d", text, 2*farther)
		}
	}
	c := testcluster.Own(t, testcluster.Options{Name: "scale", Workers: 1, FakeWorkers: 20, Audit: true, Images: []string{layout + "=" + c9sImage}})
	dir := t.TempDir()
	topo := filepath.Join(dir, "scale.clab.yml")
	for file, text := range map[string]string{topo: torus(n).topology(), filepath.Join(dir, "c9s.yaml"): placement} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := newLabOn(t, c, topo, "scale")
	lab := simulate(t, c, l.ns, torus(n))

	rendered := l.run(t, "render", topo, "-n", l.ns, "--image", c9sImage, "--planner", "builtin")
	t.Logf("%d nodes, %d links: rendered in %.1f s, %d MiB resident, %d objects, %.1f MB",
		n, 2*n, rendered.took.Seconds(), rendered.memory, bytes.Count(rendered.out, []byte("\nkind: ")), float64(len(rendered.out))/1e6)

	plain := plainDeployments(t, c, fmt.Sprintf("%d plain Deployments", n), testcluster.Objects(t, strings.ReplaceAll(deployments("", n), "nodeSelector: {kubernetes.io/os: linux}",
		"nodeSelector: {type: kwok}\n      tolerations: [{key: kwok.x-k8s.io/node, operator: Exists, effect: NoSchedule}]")))
	// Most of a write costs what the template of the Pods has: the floor of what c9s can reach.
	var own []*unstructured.Unstructured
	for _, object := range testcluster.Objects(t, string(rendered.out)) {
		if object.GetKind() == "Deployment" && object.GetLabels()["c9s.dev/component"] == "node" {
			own = append(own, object)
		}
	}
	floor := plainDeployments(t, c, fmt.Sprintf("the lab's own %d Deployments alone", len(own)), own)

	mark, began := c.MarkAudit(t), time.Now()
	deployed := l.run(t, "deploy", topo, "-n", l.ns, "--image", c9sImage, "--planner", "builtin", "--yes", "-o", "json")
	testcluster.Eventually(t, 5*time.Minute, "the controller to report that all is ready", func() error { return l.reported(t, n) })
	converged := time.Since(began)
	applied, ready := seconds(deployed.out, "applied"), seconds(deployed.out, "ready")
	t.Logf("applied in %.1f s, all Pods ready after %.1f s, converged after %.1f s, %.2f times the plain Deployments, %.2f times the lab's own; c9s deploy: %.1f s, %d MiB resident",
		applied, ready, converged.Seconds(), converged.Seconds()/plain.Seconds(), converged.Seconds()/floor.Seconds(), deployed.took.Seconds(), deployed.memory)

	time.Sleep(10 * time.Second) // what is under way ends
	all := c.WritesSince(t, mark)
	tellWrites(t, "until converged", all, n)
	tellTimes(t, all, began)
	mark = c.MarkAudit(t)
	asked := lab.asked.Load()
	time.Sleep(time.Minute)
	quiet := c.WritesSince(t, mark)
	tellWrites(t, "in a converged minute", quiet, n)
	if own := ownWrites(quiet, began); len(own) > 0 {
		t.Errorf("c9s wrote in a converged minute:\n%s", strings.Join(own, "\n"))
	}
	controller := l.controllerProcess(t)
	t.Logf("controller: %d MiB resident, %d MiB at most, %.1f s of processor since its start; it asked %d sidecars in the minute",
		controller.memory(t, "VmRSS"), controller.memory(t, "VmHWM"), controller.cpu(t).Seconds(), lab.asked.Load()-asked)

	// Some fall silent, as those of a lost worker do; others are heard as before.
	lab.set(func() {
		for i := range n / 5 {
			lab.silent[n-1-i] = true
		}
	})
	time.Sleep(time.Minute)
	lab.set(func() { lab.unplugged[0] = true })
	changed := time.Now()
	testcluster.Eventually(t, patience, "the controller to report an unplugged link", func() error {
		s, err := l.written(t)
		for _, k := range s.Links {
			if k.A.Node == "n0" && k.A.Interface == "eth1" && k.Up {
				return fmt.Errorf("n0:eth1 is up")
			}
		}
		if err == nil && len(s.Links) != 2*n {
			err = fmt.Errorf("the status is of %d links", len(s.Links))
		}
		return err
	})
	t.Logf("a link that is unplugged while %d sidecars are silent is reported after %.1f s", n/5, time.Since(changed).Seconds())
	peak := controller.memory(t, "VmHWM")
	t.Logf("controller: %d MiB resident, %d MiB at most", controller.memory(t, "VmRSS"), peak)
	if n <= 200 && peak > controllerMemory {
		t.Errorf("the controller takes %d MiB, want %d at most", peak, controllerMemory)
	}
	began = time.Now()
	destroyed := l.run(t, "destroy", l.name, "-n", l.ns, "--yes", "--timeout", "30m")
	t.Logf("destroyed in %.1f s, %d MiB resident", time.Since(began).Seconds(), destroyed.memory)
}

// plainDeployments measures Deployments of one simulated Pod each until all are available.
func plainDeployments(t *testing.T, c *testcluster.Cluster, what string, objects []*unstructured.Unstructured) time.Duration {
	t.Helper()
	ns, n := c.Namespace(t), len(objects)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "c9s-node"}} // that of a lab's Pods
	if _, err := c.Typed.CoreV1().ServiceAccounts(ns).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mark, began := c.MarkAudit(t), time.Now()
	queue := make(chan *unstructured.Unstructured, len(objects))
	for _, object := range objects {
		queue <- object
	}
	close(queue)
	var senders sync.WaitGroup
	for range 32 {
		senders.Go(func() {
			for object := range queue {
				object.SetNamespace(ns)
				d := &appsv1.Deployment{}
				err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d)
				if err == nil {
					_, err = c.Typed.AppsV1().Deployments(ns).Create(t.Context(), d, metav1.CreateOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	applied := time.Since(began)
	testcluster.Eventually(t, 10*time.Minute, "all Deployments to be available", func() error {
		list, err := c.Typed.AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		available := 0
		for _, d := range list.Items {
			available += int(d.Status.AvailableReplicas)
		}
		if available < n {
			return fmt.Errorf("%d of %d are available", available, n)
		}
		return nil
	})
	took := time.Since(began)
	time.Sleep(10 * time.Second) // what is under way ends
	all := c.WritesSince(t, mark)
	t.Logf("%s: applied in %.1f s, available after %.1f s", what, applied.Seconds(), took.Seconds())
	tellWrites(t, "until then", all, n)
	tellTimes(t, all, began)
	c.RemoveNamespace(t, ns)
	return took
}

// A ran is what became of a command.
type ran struct {
	out    []byte // standard output
	took   time.Duration
	memory int // at most, MiB resident
}

// run is a run of c9s, however long it takes.
func (l *lab) run(t *testing.T, args ...string) ran {
	t.Helper()
	cmd := l.command(t.Context(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("c9s %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return ran{out: stdout.Bytes(), took: time.Since(began), memory: int(usage.Maxrss / 1024)}
}

// seconds is how long c9s deploy -o json says that something took.
func seconds(out []byte, event string) float64 {
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		var e struct {
			Event   string
			Seconds float64
		}
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Event == event && e.Seconds > 0 { // not of one object
			return e.Seconds
		}
	}
	return 0
}

// written is the status as the controller last wrote it; empty before.
func (l *lab) written(t *testing.T) (s state, err error) {
	t.Helper()
	cm, err := l.Typed.CoreV1().ConfigMaps(l.ns).Get(t.Context(), "c9s-status", metav1.GetOptions{})
	if err != nil {
		return s, err
	}
	text := []byte(cm.Data["status.json"])
	if packed := cm.BinaryData["status.json.gz"]; packed != nil { // that of a large lab
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return s, err
		}
		if text, err = io.ReadAll(r); err != nil {
			return s, err
		}
	}
	if len(text) > 0 {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// reported checks that the controller has written that every node is ready and
// every link up, and the address of every Pod.
func (l *lab) reported(t *testing.T, n int) error {
	if s, err := l.written(t); err != nil || s.State != "ready" || len(s.Nodes) != n || len(s.Links) != 2*n {
		return fmt.Errorf("the status is %q, of %d nodes and %d links (%v)", s.State, len(s.Nodes), len(s.Links), err)
	}
	cm, err := l.Typed.CoreV1().ConfigMaps(l.ns).Get(t.Context(), "c9s-addresses", metav1.GetOptions{})
	if err != nil {
		return err
	}
	var a struct{ Pods map[string][]string }
	if err := json.Unmarshal([]byte(cm.Data["addresses.json"]), &a); err != nil || len(a.Pods) != n {
		return fmt.Errorf("the addresses of %d Pods are written, %v", len(a.Pods), err)
	}
	return nil
}

func writesBy(all []testcluster.Write) map[string]int {
	by := map[string]int{}
	for _, w := range all {
		by[w.Agent]++
	}
	return by
}

// ownWrites describes each write of c9s, by its time after the beginning.
func ownWrites(all []testcluster.Write, began time.Time) (own []string) {
	for _, w := range all {
		if strings.HasPrefix(w.Agent, "c9s") {
			own = append(own, fmt.Sprintf("%.1f s: %s %s %s/%s", w.At.Sub(began).Seconds(), w.Agent, w.Verb, w.Resource, w.Name))
		}
	}
	return own
}

// tellWrites says who wrote, and what c9s wrote.
func tellWrites(t *testing.T, when string, all []testcluster.Write, nodes int) {
	t.Helper()
	by, what := writesBy(all), map[string]int{}
	for _, w := range all {
		if strings.HasPrefix(w.Agent, "c9s") {
			what[w.Agent+" "+w.Verb+" "+w.Resource]++
		}
	}
	t.Logf("writes %s: %d, %.1f a node", when, len(all), float64(len(all))/float64(nodes))
	for _, agent := range slices.Sorted(maps.Keys(by)) {
		t.Logf("  %-40s %6d %6.1f a node", agent, by[agent], float64(by[agent])/float64(nodes))
	}
	for _, w := range slices.Sorted(maps.Keys(what)) {
		t.Logf("    %-38s %6d", w, what[w])
	}
}

// A process is one of this machine, by its id.
type process string

// controllerProcess finds the controller's, which shares the machine's kernel.
func (l *lab) controllerProcess(t *testing.T) process {
	t.Helper()
	pods, err := l.Typed.CoreV1().Pods(l.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "c9s.dev/component=controller"})
	if err != nil || len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 {
		t.Fatalf("the controller has no Pod that runs: %v", err)
	}
	_, container, _ := strings.Cut(pods.Items[0].Status.ContainerStatuses[0].ContainerID, "://")
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), container) {
			return process(filepath.Base(filepath.Dir(file)))
		}
	}
	t.Fatalf("no process of container %s", container)
	return ""
}

// memory is a field of /proc/PID/status, MiB.
func (p process) memory(t *testing.T, field string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", string(p), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), field+":")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("%s of process %s: %v", field, p, err)
	}
	return (kib + 1023) / 1024
}

// cpu is the processor time that it has used.
func (p process) cpu(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", string(p), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	// After the name, which is in parentheses: utime and stime are fields 14 and 15,
	// in hundredths of a second.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
