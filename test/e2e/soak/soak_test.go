// Package soak shows that clusters leave the host as they found it, whatever
// happens to them.
package soak

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

const (
	cluster = "soak"

	// CyclesVariable asks for TestSoak, and says how many cycles.
	cyclesVariable = "C9S_SOAK"

	thirtyPods = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: thirty}
spec:
  replicas: 30
  selector: {matchLabels: {app: thirty}}
  template:
    metadata: {labels: {app: thirty}}
    spec: {containers: [{name: pause, image: "registry.k8s.io/pause:3.10"}]}
`
)

func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run a Kubernetes cluster")
	}
}

func TestSoak(t *testing.T) {
	requireRoot(t)
	cycles, err := strconv.Atoi(os.Getenv(cyclesVariable))
	if err != nil {
		t.Skipf("takes minutes: set %s to a number of cycles", cyclesVariable)
	}
	before := readHostState(t)
	t.Cleanup(func() { removeCluster(t) })
	for i := range cycles {
		began := time.Now()
		var progress bytes.Buffer
		c, _, err := testcluster.Start(t.Context(), testcluster.Options{Name: cluster}, &progress)
		if err != nil {
			t.Fatalf("cycle %d: %v\n%s", i+1, err, progress.String())
		}
		up := time.Since(began)
		c.Apply(t, "default", thirtyPods)
		c.WaitAvailable(t, "default", "thirty")
		pods := time.Since(began) - up
		began = time.Now()
		if err := c.Down(context.Background(), os.Stderr); err != nil {
			t.Fatal(err)
		}
		t.Logf("cycle %d of %d: up %.1f s, 30 Pods %.1f s, down %.1f s", i+1, cycles, up.Seconds(), pods.Seconds(), time.Since(began).Seconds())
		checkHost(t, before)
		if t.Failed() {
			return
		}
	}
}

// A start that is killed at any point leaves nothing behind after down, and the
// next start works without it.
func TestTornStart(t *testing.T) {
	requireRoot(t)
	program, err := testcluster.Program()
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(program, append([]string{"--name", cluster}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("c9s-cluster %v: %v\n%s", args, err, out)
		}
	}
	run("build") // so that it is starts that are torn
	before := readHostState(t)
	t.Cleanup(func() { removeCluster(t) })
	for _, after := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second} {
		t.Run(fmt.Sprint("killed after ", after), func(t *testing.T) {
			tear(t, program, after)
			run("down")
			checkHost(t, before)
		})
	}
	t.Run("up again", func(t *testing.T) {
		tear(t, program, time.Second)
		run("up")
		run("up") // and on a whole one it changes nothing
		run("down")
		checkHost(t, before)
	})
	t.Run("the control plane killed", func(t *testing.T) {
		run("up", "--workers", "1")
		run("node", "exec", "control", "sh", "-c", "kill -9 -1") // all but the init, which starts them again
		run("up", "--workers", "1")
		run("down")
		checkHost(t, before)
	})
}

// removeCluster is for a test that failed with its cluster up.
func removeCluster(t *testing.T) {
	program, err := testcluster.Program()
	if err != nil {
		t.Error(err)
		return
	}
	if out, err := exec.Command(program, "down", "--name", cluster).CombinedOutput(); err != nil {
		t.Errorf("removing the cluster: %v\n%s", err, out)
	}
}

func tear(t *testing.T, program string, after time.Duration) {
	t.Helper()
	up := exec.Command(program, "up", "--name", cluster)
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = up.Process.Kill()
	_ = up.Wait() // it was killed, or was quicker
}
