package lab

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// TestGenerate: a fabric pings as it was generated, by every spine, and by the other one when a
// spine is stopped.
func TestGenerate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dc")
	cmd := exec.CommandContext(t.Context(), program, "generate", "--name", "dc", "--spines", "2", "--leaves", "2", "-o", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l := newLab(t, filepath.Join(dir, "dc.clab.yml"), "dc")
	began := time.Now()
	l.deploy(t)
	l.ready(t)
	ping := func() error {
		out, err := l.in(context.Background(), "leaf1-host1", "ping", "-c", "1", "-W", "1", "10.128.1.11")
		if err == nil && !strings.Contains(out, " 0% packet loss") {
			err = fmt.Errorf("it prints %s", out)
		}
		return err
	}
	testcluster.Eventually(t, patience, "hosts to reach each other", ping)
	t.Logf("hosts reach each other %s after the start of deploy", time.Since(began).Round(100*time.Millisecond))
	for _, leaf := range []string{"leaf1", "leaf2"} {
		testcluster.Eventually(t, patience, leaf+" to use both spines", func() error {
			other := map[string]string{"leaf1": "10.0.0.2/32", "leaf2": "10.0.0.1/32"}[leaf]
			out, err := l.in(context.Background(), leaf, "vtysh", "-c", "show ip route "+other+" json")
			if err == nil && strings.Count(out, `"interfaceName":"eth`) < 2 {
				err = fmt.Errorf("it prints %s", out)
			}
			return err
		})
	}
	l.c9s(t, "stop", "spine1", "-n", l.ns)
	testcluster.Eventually(t, patience, "the other spine to take over", ping)
	l.destroyed(t)
}
