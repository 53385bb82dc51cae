package lab

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

const costNodes = 20

// ownWritesANode is the most that c9s itself may write for a node: its objects, a
// few of the whole lab, the controller's reports. What Kubernetes writes for a Pod
// by itself (events, statuses, endpoints) comes on top, and is reported.
const ownWritesANode = 6

// What a lab costs next to as many Deployments of the same image: time and writes,
// measured in one run. The Deployments with a native sidecar have what a lab's Pods
// have, but it does nothing: what is left is the cost of c9s.
func TestCost(t *testing.T) {
	long(t)
	c := testcluster.Own(t, testcluster.Options{Name: "cost", IPv6: true, Audit: true, Images: []string{"linux", layout + "=" + c9sImage}})

	// Some of both first, so that the images are on the workers.
	few := newLabOn(t, c, ring(t, 6), "cost")
	few.deploy(t)
	few.destroyed(t)
	measureDeployments(t, c, "", 6)

	for round := range 3 {
		for _, d := range []struct{ name, sidecar string }{
			{"one container", ""},
			{"a native sidecar that does nothing", idleSidecar},
			{"the same with a startup probe", idleSidecar + `, startupProbe: {periodSeconds: 1, exec: {command: ["true"]}}`},
			{"the same with a hook", idleSidecar + `, lifecycle: {postStart: {exec: {command: ["true"]}}}`},
		} {
			took, all := measureDeployments(t, c, d.sidecar, costNodes)
			t.Logf("%d Deployments, %s: available after %s", costNodes, d.name, took.Round(100*time.Millisecond))
			tellWrites(t, "until then", all, costNodes)
		}
		measureLab(t, c, round == 2)
	}
}

// measureLab deploys and destroys a lab, and may look at it while it is at rest.
func measureLab(t *testing.T, c *testcluster.Cluster, rest bool) {
	t.Helper()
	l := newLabOn(t, c, ring(t, costNodes), "cost")
	mark, began := c.MarkAudit(t), time.Now()
	l.deploy(t)
	took := time.Since(began)
	time.Sleep(2 * time.Second) // what is under way is written
	all := c.WritesSince(t, mark)
	t.Logf("a lab of %d nodes: ready after %s", costNodes, took.Round(100*time.Millisecond))
	tellWrites(t, "until then", all, costNodes)
	tellTimes(t, all, began)
	by := writesBy(all)
	if ours := float64(by["c9s"]+by["c9s-controller"]) / costNodes; ours > ownWritesANode {
		t.Errorf("c9s writes %.1f times a node, want %d at most", ours, ownWritesANode)
	}

	// A lab at rest costs nothing: only leases are renewed.
	if rest {
		time.Sleep(10 * time.Second)
		mark = c.MarkAudit(t)
		time.Sleep(time.Minute)
		if own := ownWrites(c.WritesSince(t, mark), began); len(own) > 0 {
			t.Errorf("c9s wrote in a converged minute:\n%s", strings.Join(own, "\n"))
		}
	}
	began = time.Now()
	l.destroyed(t)
	t.Logf("destroyed after %s", time.Since(began).Round(100*time.Millisecond))
}

const idleSidecar = `name: side, restartPolicy: Always, image: ` + goodImage + `, command: [sleep, infinity]`

// measureDeployments measures Deployments of one Pod each until all are available,
// with an init container that is empty for none.
func measureDeployments(t *testing.T, c *testcluster.Cluster, sidecar string, n int) (time.Duration, []testcluster.Write) {
	t.Helper()
	ns := c.Namespace(t)
	mark, began := c.MarkAudit(t), time.Now()
	c.Apply(t, ns, deployments(sidecar, n))
	for i := range n {
		c.WaitAvailable(t, ns, fmt.Sprintf("p%d", i))
	}
	took := time.Since(began)
	time.Sleep(2 * time.Second) // what is under way is written
	all := c.WritesSince(t, mark)
	c.RemoveNamespace(t, ns)
	return took, all
}

func deployments(sidecar string, n int) string {
	if sidecar != "" {
		sidecar = "{" + sidecar + "}"
	}
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: p%[1]d, labels: {app: p%[1]d}}
spec:
  selector: {matchLabels: {app: p%[1]d}}
  template:
    metadata: {labels: {app: p%[1]d}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {kubernetes.io/os: linux}
      initContainers: [%[3]s]
      containers: [{name: main, image: %[2]q}]
`, i, goodImage, sidecar)
	}
	return b.String()
}

// tellTimes says when writes of each sort began and ended.
func tellTimes(t *testing.T, all []testcluster.Write, began time.Time) {
	t.Helper()
	type span struct {
		n           int
		first, last time.Duration
	}
	spans := map[string]span{}
	for _, w := range all {
		sort := w.Agent + " " + w.Verb + " " + w.Resource
		at := w.At.Sub(began)
		s, ok := spans[sort]
		if !ok {
			s.first = at
		}
		s.n, s.first, s.last = s.n+1, min(s.first, at), max(s.last, at)
		spans[sort] = s
	}
	sorts := slices.SortedFunc(maps.Keys(spans), func(a, b string) int { return cmp.Compare(spans[a].first, spans[b].first) })
	for _, sort := range sorts {
		s := spans[sort]
		t.Logf("  %5.2f to %5.2f s %5d %s", s.first.Seconds(), s.last.Seconds(), s.n, sort)
	}
}

// ring is a topology of n hosts in a ring.
func ring(t *testing.T, n int) string {
	t.Helper()
	var nodes, links strings.Builder
	for i := range n {
		fmt.Fprintf(&nodes, "    n%d: {}\n", i)
		fmt.Fprintf(&links, "    - endpoints: [\"n%d:eth1\", \"n%d:eth2\"]\n", i, (i+1)%n)
	}
	file := filepath.Join(t.TempDir(), "cost.clab.yml")
	text := fmt.Sprintf("name: cost\ntopology:\n  defaults: {kind: linux, image: %q}\n  nodes:\n%s  links:\n%s", goodImage, nodes.String(), links.String())
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
