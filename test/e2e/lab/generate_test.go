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

// TestGenerate: networks pass their own checks as they were generated, and ping by another
// router when one is stopped.
func TestGenerate(t *testing.T) {
	for name, test := range map[string]struct {
		args                []string
		from, to, redundant string
	}{
		"dc":  {[]string{"--spines", "2", "--leaves", "2"}, "leaf1-host1", "10.128.2.1", "spine1"},
		"isp": {[]string{"--shape", "isp", "--core", "2", "--edges", "2", "--underlay", "ospf"}, "pe1-ce1-host1", "10.128.32.1", "p1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			cmd := exec.CommandContext(t.Context(), program, append([]string{"generate", "--name", name, "-o", dir}, test.args...)...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			topo := filepath.Join(dir, name+".clab.yml")
			l := newLab(t, topo, name)
			t.Cleanup(func() {
				if t.Failed() {
					out, _ := l.try(context.Background(), "exec", test.redundant, "-n", l.ns, "--", "vtysh", "-c", "show bgp summary", "-c", "show ip route", "-c", "show running-config")
					t.Logf("%s: %s", test.redundant, out)
				}
			})
			began := time.Now()
			l.deploy(t)
			l.ready(t)
			t.Logf("%s", l.c9s(t, "test", "-t", topo, "-n", l.ns))
			t.Logf("%s passes its checks %s after the start of deploy", name, time.Since(began).Round(100*time.Millisecond))
			l.c9s(t, "stop", test.redundant, "-n", l.ns)
			testcluster.Eventually(t, patience, "the other router to take over", func() error {
				out, err := l.in(context.Background(), test.from, "ping", "-c", "1", "-W", "1", test.to)
				if err == nil && !strings.Contains(out, " 0% packet loss") {
					err = fmt.Errorf("it prints %s", out)
				}
				return err
			})
			l.destroyed(t)
		})
	}
}
