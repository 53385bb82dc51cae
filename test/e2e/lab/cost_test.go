package lab

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

const costNodes = 20

// ownWritesANode is the most that c9s itself may write for a node: its objects, a
// few of the whole lab, the controller's reports. What Kubernetes writes for a Pod
// by itself (events, statuses, endpoints) comes on top, and is reported.
const ownWritesANode = 10

// What a lab costs next to as many plain Pods of the same image: time and writes,
// measured in one run.
func TestCost(t *testing.T) {
	long(t)
	c := testcluster.Shared(t)

	// Some of both first, so that the images are on the workers.
	few := newLab(t, ring(t, 6), "cost")
	few.deploy(t)
	few.destroyed(t)
	warm := c.Namespace(t)
	c.Apply(t, warm, plainPods(6))
	waitPlain(t, c, warm, 6)
	ns := c.Namespace(t)
	before := writes(t, c)
	began := time.Now()
	c.Apply(t, ns, plainPods(costNodes))
	waitPlain(t, c, ns, costNodes)
	plain := time.Since(began)
	plainWrites := float64(writes(t, c)-before) / costNodes
	c.RemoveNamespace(t, ns)
	c.RemoveNamespace(t, warm)

	l := newLab(t, ring(t, costNodes), "cost")
	before, ownBefore := writes(t, c), ownWrites(t, c)
	began = time.Now()
	l.deploy(t)
	took := time.Since(began)
	perNode, ours := float64(writes(t, c)-before)/costNodes, float64(ownWrites(t, c)-ownBefore)/costNodes
	l.ready(t)
	t.Logf("%d nodes ready in %s (%.1f writes a node, %.1f of them c9s' own), as many plain Pods in %s (%.1f writes)",
		costNodes, took.Round(100*time.Millisecond), perNode, ours, plain.Round(100*time.Millisecond), plainWrites)
	if ours > ownWritesANode {
		t.Errorf("c9s writes %.1f times a node, want %d at most", ours, ownWritesANode)
	}

	// A lab at rest costs nothing: only leases are renewed.
	time.Sleep(40 * time.Second)
	quiet := ownWrites(t, c)
	time.Sleep(time.Minute)
	if n := ownWrites(t, c) - quiet; n > 0 {
		t.Errorf("c9s wrote %d times in a converged minute", n)
	}
	l.destroyed(t)
}

func plainPods(n int) string {
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
      containers: [{name: main, image: %[2]q}]
`, i, goodImage)
	}
	return b.String()
}

func waitPlain(t *testing.T, c *testcluster.Cluster, ns string, n int) {
	t.Helper()
	for i := range n {
		c.WaitAvailable(t, ns, fmt.Sprintf("p%d", i))
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

var requestLine = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)

// requests sums the API server's own count of requests that meet a condition.
func requests(t *testing.T, c *testcluster.Cluster, counts func(labels string) bool) int {
	t.Helper()
	data, err := c.Typed.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := requestLine.FindStringSubmatch(lines.Text())
		if m == nil || !counts(m[1]) {
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return int(sum)
}

var writeVerb = regexp.MustCompile(`verb="(POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)"`)

// notWorth are requests that come without a lab too, or change nothing.
var notWorth = regexp.MustCompile(`resource="(leases|tokenreviews|subjectaccessreviews|selfsubjectaccessreviews)"|subresource="(token|exec|proxy)"|resource="nodes"|dry_run="[^"]+"|code="(404|409)"`)

func writes(t *testing.T, c *testcluster.Cluster) int {
	return requests(t, c, func(labels string) bool { return writeVerb.MatchString(labels) && !notWorth.MatchString(labels) })
}

// own are requests as only c9s makes them: server-side applies, patches of
// ConfigMaps and of Pods' metadata.
var own = regexp.MustCompile(`verb="APPLY"|resource="configmaps"|resource="pods",.*subresource="",.*verb="PATCH"`)

func ownWrites(t *testing.T, c *testcluster.Cluster) int {
	return requests(t, c, func(labels string) bool {
		return writeVerb.MatchString(labels) && own.MatchString(labels) && !notWorth.MatchString(labels)
	})
}
