package bringup

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/node"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
	"github.com/c9s-lab/c9s/test/cluster/internal/underlay"
)

// Worker finds a worker by its name or number.
func Worker(c site.Cluster, name string) (site.Node, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(name, "n"))
	if err != nil || number < 1 || number > c.Workers {
		return site.Node{}, fmt.Errorf("cluster %s has no worker %q: there are n1 to n%d", c.Name, name, c.Workers)
	}
	return c.Worker(number), nil
}

// StopNode kills a worker with its kubelet and containers, as a loss of power.
func StopNode(ctx context.Context, n site.Node) error {
	return locked(ctx, n, func() error { return node.Kill(n) })
}

// StartNode boots a worker that was stopped, with a clean network.
func StartNode(ctx context.Context, n site.Node) error {
	return locked(ctx, n, func() error {
		if _, running := node.Running(n); running {
			return nil
		}
		if err := underlay.ResetNode(n); err != nil {
			return err
		}
		return startWorker(n)
	})
}

// SetClock boots a worker again with a clock that is off for the programs that go by
// it: the kubelet, containerd, and what of the containers was built with
// the same overlay of package time. Zero is the machine's clock.
func SetClock(ctx context.Context, n site.Node, offset time.Duration, tell func(string)) error {
	if offset != 0 {
		cache := binaries.Cache{Dir: n.Cluster.Cache}
		if err := cache.Clocked().Ensure(ctx, binaries.WithClock, tell); err != nil {
			return err
		}
	}
	return locked(ctx, n, func() error {
		c, err := site.Load(n.Cluster.Name)
		if err != nil {
			return err
		}
		if c.Clocks == nil {
			c.Clocks = map[string]int{}
		}
		if c.Clocks[n.Name()] = int(offset / time.Second); offset == 0 {
			delete(c.Clocks, n.Name())
		}
		if err := c.Save(); err != nil {
			return err
		}
		n = c.Worker(n.Number)
		if err := node.Kill(n); err != nil {
			return err
		}
		if err := underlay.ResetNode(n); err != nil {
			return err
		}
		return startWorker(n)
	})
}

// CutNode parts a worker from all others and from the control plane.
func CutNode(ctx context.Context, n site.Node) error {
	return locked(ctx, n, func() error { return underlay.SetPort(n, false) })
}

// HealNode ends what CutNode did.
func HealNode(ctx context.Context, n site.Node) error {
	return locked(ctx, n, func() error { return underlay.SetPort(n, true) })
}

func locked(ctx context.Context, n site.Node, f func() error) error {
	unlock, err := lock(ctx, n.Cluster.Name)
	if err != nil {
		return err
	}
	defer unlock()
	return f()
}
