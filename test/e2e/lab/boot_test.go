package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBootLimit: at most two devices of a worker boot at the same time. A device boots from the
// start of its container until its probe succeeds.
func TestBootLimit(t *testing.T) {
	const nodes, limit, takes = 6, 2, 4 * time.Second
	var topo strings.Builder
	topo.WriteString("name: boot\ntopology:\n  defaults: {kind: linux, image: \"ghcr.io/srl-labs/network-multitool:latest\"}\n  nodes:\n")
	for i := range nodes {
		fmt.Fprintf(&topo, "    n%d: {exec: [\"sh -c 'sleep %d; touch /tmp/booted'\"]}\n", i+1, int(takes/time.Second))
	}
	l := written(t, "boot", map[string]string{"lab.clab.yml": topo.String()})
	policy := `apiVersion: c9s.dev/v1
kind: Policy
boot: {perWorker: 2}
profiles:
  - name: slow
    set:
      nodeSelector: {kubernetes.io/hostname: ` + l.Workers[0] + `}
      probes: {readiness: {exec: {command: [test, -e, /tmp/booted]}, periodSeconds: 1}}
`
	if err := os.WriteFile(filepath.Join(filepath.Dir(l.topo), "c9s.yaml"), []byte(policy), 0o644); err != nil {
		t.Fatal(err)
	}
	l.deploy(t)
	l.ready(t)
	var starts []time.Time
	for _, n := range l.status(t).Nodes {
		p := l.pod(t, n.Pod)
		if len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].State.Running == nil {
			t.Fatalf("%s: %+v", n.Name, p.Status.ContainerStatuses)
		}
		starts = append(starts, p.Status.ContainerStatuses[0].State.Running.StartedAt.Time)
	}
	slices.SortFunc(starts, time.Time.Compare)
	for i := range starts {
		t.Logf("device %d starts after %s", i+1, starts[i].Sub(starts[0]))
		if i >= limit && starts[i].Sub(starts[i-limit]) < takes {
			t.Errorf("device %d starts %s after device %d, which boots for %s", i+1, starts[i].Sub(starts[i-limit]), i+1-limit, takes)
		}
	}
	if took := starts[nodes-1].Sub(starts[0]); took > 60*time.Second {
		t.Errorf("the last device starts after %s", took)
	}
	l.destroyed(t)
}
