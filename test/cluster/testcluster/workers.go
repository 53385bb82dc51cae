package testcluster

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
	"github.com/c9s-lab/c9s/test/cluster/internal/underlay"
)

// StopWorker kills a worker with everything on it. It is started again when the
// test ends.
func (c *Cluster) StopWorker(t testing.TB, name string) {
	t.Helper()
	c.fail(t, name, "stop", "start")
}

// StartWorker boots a stopped worker, and waits until it is ready.
func (c *Cluster) StartWorker(t testing.TB, name string) {
	t.Helper()
	c.recover(t, name, "start")
}

// CutWorker parts a worker from the network. It is joined again when the test
// ends.
func (c *Cluster) CutWorker(t testing.TB, name string) {
	t.Helper()
	c.fail(t, name, "cut", "heal")
}

// HealWorker joins a worker to the network again, and waits until it is ready.
func (c *Cluster) HealWorker(t testing.TB, name string) {
	t.Helper()
	c.recover(t, name, "heal")
}

// SetClock boots a worker again with a clock that is off, and waits until it is ready.
// It has the machine's clock again when the test ends. See ClockOverlay.
func (c *Cluster) SetClock(t testing.TB, name string, offset time.Duration) {
	t.Helper()
	set := func(ctx context.Context, offset time.Duration) {
		began := time.Now().Add(offset)
		if err := c.run(ctx, t.Output(), "node", "clock", name, "--offset", offset.String()); err != nil {
			t.Error(err)
			return
		}
		c.WaitWorker(t, name, true, began)
	}
	t.Cleanup(func() {
		if record, err := site.Load(c.Name); err != nil || record.Clocks[name] != 0 {
			set(context.Background(), 0)
		}
	})
	if set(t.Context(), offset); t.Failed() {
		t.FailNow()
	}
}

// ClockOverlay is what `go build -overlay` takes to build programs whose clock in the
// containers of such a worker is the worker's. All others have the machine's.
func ClockOverlay(t testing.TB) string {
	t.Helper()
	cache, err := binaries.Open()
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := cache.Overlay(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	return overlay
}

func (c *Cluster) fail(t testing.TB, name, how, back string) {
	t.Helper()
	t.Cleanup(func() { c.recover(t, name, back) })
	if err := c.run(t.Context(), t.Output(), "node", how, name); err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) recover(t testing.TB, name, how string) {
	t.Helper()
	began := time.Now()
	if err := c.run(context.Background(), t.Output(), "node", how, name); err != nil {
		t.Fatal(err)
	}
	c.WaitWorker(t, name, true, began)
}

// WaitWorker waits until the API server counts a worker as ready, or as lost. Of
// a ready one it must have heard after the given time.
func (c *Cluster) WaitWorker(t testing.TB, name string, ready bool, after time.Time) {
	t.Helper()
	Eventually(t, 5*time.Minute, fmt.Sprintf("worker %s to be ready: %v", name, ready), func() error {
		lease, err := c.Typed.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ready && lease.Spec.RenewTime.Time.Before(after) {
			return fmt.Errorf("not heard of since %s", lease.Spec.RenewTime)
		}
		node, err := c.Typed.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && (condition.Status == corev1.ConditionTrue) == ready {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", node.Status.Conditions)
	})
}

// ListenOnWorker listens on the i-th worker, 0-based, until the test ends.
func (c *Cluster) ListenOnWorker(t testing.TB, i int, address string) net.Listener {
	t.Helper()
	l, err := underlay.Listen(site.Cluster{Name: c.Name}.Worker(i+1), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
