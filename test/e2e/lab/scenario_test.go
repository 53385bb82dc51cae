package lab

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// TestScenario: nodes stop and start, a worker is drained, links flap and commands run, and all of
// it is taken back. A scenario whose c9s is killed leaves no link down for long.
func TestScenario(t *testing.T) {
	long(t)
	l := looked(t, "broken")
	l.reaches(t, "A", "10.0.0.2")
	worker := l.pod(t, "b").Spec.NodeName
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "scenario.yaml")
		if err := os.WriteFile(file, []byte("apiVersion: c9s.dev/v1\nkind: Scenario\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := write(fmt.Sprintf(`seed: 7
duration: 60s
probes:
  - {from: A, to: 10.0.0.2}
events:
  - {at: 1s, link: "A:eth1", do: flap, flaps: {times: 2, every: 2s}}
  - {at: 6s, exec: "*", command: hostname}
  - {at: 8s, node: B, do: stop, for: 5s}
  - {at: 30s, worker: %s, do: drain}
`, worker))
	out, err := l.output(t, "run", file, "--lab", l.name, "-n", l.ns, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Failed int
		Events []struct{ Event, State, Detail string }
		Probes []struct{ Outages []struct{ After string } }
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", out)
	after := map[string]bool{}
	for _, o := range r.Probes[0].Outages {
		after[o.After] = true
	}
	if r.Failed != 0 || !after["node B stop for 5s"] || !after["worker "+worker+" drain"] {
		t.Errorf("failed %d, outages after %v", r.Failed, after)
	}
	for _, e := range r.Events {
		if strings.HasPrefix(e.Event, "exec") && e.Detail != "A: A; B: B" {
			t.Errorf("the command printed %q", e.Detail)
		}
	}
	if now := l.pod(t, "b").Spec.NodeName; now == worker {
		t.Errorf("B is still on worker %s", worker)
	}
	node, err := l.Typed.CoreV1().Nodes().Get(t.Context(), worker, metav1.GetOptions{})
	if err != nil || node.Spec.Unschedulable {
		t.Errorf("worker %s is still cordoned, %v", worker, err)
	}
	l.ready(t)

	cmd := l.command(t.Context(), "run", write("duration: 3s\nevents:\n  - {at: 0s, link: \"A:eth1\"}\n"), "--lab", l.name, "-n", l.ns)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l.eventually(t, "A", "0", "cat", "/sys/class/net/eth1/carrier")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	began := time.Now()
	testcluster.Eventually(t, 2*time.Minute, "the link to come back", func() error {
		if out, err := l.in(t.Context(), "A", "cat", "/sys/class/net/eth1/carrier"); err != nil || strings.TrimSpace(out) != "1" {
			return fmt.Errorf("%v %s", err, out)
		}
		return nil
	})
	t.Logf("the link is back %s after c9s was killed", time.Since(began).Round(time.Second))
	l.destroyed(t)
}
