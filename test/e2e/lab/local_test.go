package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// TestLocalWires: two Pods of one worker are joined in its kernel, whatever the MTU. One moves
// to another worker and back under traffic, and the link takes another datapath and this one
// again. Nothing stays on the workers.
func TestLocalWires(t *testing.T) {
	l := written(t, "near", map[string]string{
		"c9s.yaml": "apiVersion: c9s.dev/v1\nkind: Policy\nplacement: pack\n",
		"lab.clab.yml": `name: near
topology:
  defaults: {kind: linux, image: 'ghcr.io/srl-labs/network-multitool:latest'}
  nodes:
    A: {exec: [ip addr add 10.0.0.1/24 dev eth1]}
    B: {exec: [ip addr add 10.0.0.2/24 dev eth1]}
  links:
    - endpoints: ["A:eth1", "B:eth1"]
`})
	l.deploy(t)
	takes := func(local bool) {
		t.Helper()
		testcluster.Eventually(t, patience, fmt.Sprintf("a link that is local: %v", local), func() error {
			s, err := l.tryStatus(t, "--fresh")
			if err == nil && (len(s.Links) != 1 || !s.Links[0].Up || (s.Links[0].Datapath == "local") != local) {
				err = fmt.Errorf("links %+v, nodes %+v", s.Links, s.Nodes)
			}
			return err
		})
		l.eventually(t, "A", " 0% packet loss", "ping", "-c", "1", "-W", "1", "-s", "9000", "-M", "do", "10.0.0.2")
	}
	takes(true)
	for _, worker := range l.Workers {
		if found, err := l.TryOnNode(t.Context(), worker, "sh", "-c", "grep -l ' /host/c9s ' /proc/[0-9]*/mountinfo"); err == nil {
			t.Errorf("the folder of worker %s is mounted in processes: %s", worker, found)
		}
	}
	if out, err := l.in(t.Context(), "A", "sh", "-c", "ping -i 0.02 -s 4000 10.0.0.2 >/tmp/traffic 2>&1 &"); err != nil {
		t.Fatalf("starting traffic: %v\n%s", err, out)
	}
	for range 2 {
		old := l.pod(t, "b")
		worker := old.Spec.NodeName
		setUnschedulable(t, l, worker, true)
		t.Cleanup(func() { setUnschedulable(t, l, worker, false) })
		began := time.Now()
		l.c9s(t, "restart", "B", "--lab", l.name, "-n", l.ns)
		l.replaced(t, old)
		takes(false)
		setUnschedulable(t, l, worker, false)
		t.Logf("on another worker after %s", time.Since(began).Round(100*time.Millisecond))
		old = l.pod(t, "b")
		began = time.Now()
		l.c9s(t, "restart", "B", "--lab", l.name, "-n", l.ns)
		l.replaced(t, old)
		takes(true)
		t.Logf("back after %s", time.Since(began).Round(100*time.Millisecond))
	}
	l.eventually(t, "A", "bytes from", "tail", "-n", "3", "/tmp/traffic")
	l.destroyed(t)
	for _, worker := range l.Workers {
		if left := strings.TrimSpace(l.OnNode(t, worker, "sh", "-c", "ls -A /run/c9s 2>/dev/null || true")); left != "" {
			t.Errorf("worker %s has %s left in /run/c9s", worker, left)
		}
	}
}
