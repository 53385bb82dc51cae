package bringup

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
