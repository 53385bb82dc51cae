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

// TestGenerate: a fabric passes its own checks as it was generated, and pings by the other spine
// when one is stopped.
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
	l.c9s(t, "test", "-t", filepath.Join(dir, "dc.clab.yml"), "-n", l.ns, "--timeout", "2m")
	l.c9s(t, "stop", "spine1", "-n", l.ns)
	testcluster.Eventually(t, patience, "the other spine to take over", ping)
	l.destroyed(t)
}
