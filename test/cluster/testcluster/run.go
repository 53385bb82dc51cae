package testcluster

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

var (
	shared     *Cluster
	whyNot     error
	needsRoot  = os.Geteuid() != 0
	skipReason = "needs root, to run a Kubernetes cluster"
)

// Run runs a package's tests with a cluster, and removes the cluster after them
// if it started it. Without root there is none, and tests that ask for it skip.
func Run(m *testing.M, o Options) (code int) {
	if needsRoot {
		return m.Run()
	}
	ctx := context.Background()
	began := time.Now()
	c, started, err := Start(ctx, o, os.Stderr)
	up := time.Since(began)
	if err != nil {
		whyNot = err
	}
	shared = c
	code = m.Run()
	tested := time.Since(began) - up
	if !started || c == nil {
		return code
	}
	began = time.Now()
	if err := c.Down(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	fmt.Fprintf(os.Stderr, "cluster: up %.1f s, tests %.1f s, down %.1f s\n", up.Seconds(), tested.Seconds(), time.Since(began).Seconds())
	return code
}

// Shared is the cluster of Run. The test fails when it could not be started,
// and skips without root.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	switch {
	case needsRoot:
		t.Skip(skipReason)
	case whyNot != nil:
		t.Fatal(whyNot)
	case shared == nil:
		t.Fatal("no cluster: call testcluster.Run in TestMain")
	}
	return shared
}

// Own starts a cluster for one test, under a name of its own, and removes it
// afterwards.
func Own(t testing.TB, o Options) *Cluster {
	t.Helper()
	if needsRoot {
		t.Skip(skipReason)
	}
	progress := t.Output()
	c, started, err := Start(t.Context(), o, progress)
	if started {
		t.Cleanup(func() {
			left := &Cluster{Name: o.withDefaults().Name}
			if left.program, err = Program(); err == nil {
				err = left.Down(context.Background(), progress)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
