package bringup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/internal/cgroup"
	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/kubeconfig"
	"github.com/c9s-lab/c9s/test/cluster/internal/node"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
	"github.com/c9s-lab/c9s/test/cluster/internal/underlay"
)

// Down removes a cluster, in whatever state it is, and leaves the host as it
// was. It is no error when there is none.
func Down(ctx context.Context, name string, out io.Writer) error {
	if err := requireRoot(); err != nil {
		return err
	}
	if err := (site.Cluster{Name: name, Workers: 1, MTU: 1500}).Validate(); err != nil {
		return err
	}
	unlock, err := lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	began := time.Now()
	if err := remove(site.Cluster{Name: name}); err != nil {
		return err
	}
	if err := removeLocks(ctx, name); err != nil {
		return err
	}
	fmt.Fprintf(out, "cluster %s removed in %.1f s\n", name, time.Since(began).Seconds())
	return nil
}

// remove goes by the cluster's name alone: a torn start may have left no record.
func remove(c site.Cluster) error {
	if err := node.KillTree(c.CgroupPath()); err != nil {
		return err
	}
	if err := underlay.Remove(c); err != nil {
		return fmt.Errorf("removing the network: %w", err)
	}
	if record, err := site.Load(c.Name); err == nil {
		c.Merged = record.Merged
	}
	err := errors.Join(kubeconfig.Unmerge(c), os.RemoveAll(c.Run()), removeState(c))
	if err != nil {
		return err
	}
	return removeShared()
}

// removeState removes the nodes' data side by side: the files of their images are
// most of the work of removing a cluster.
func removeState(c site.Cluster) error {
	dirs, err := filepath.Glob(filepath.Join(c.State(), "nodes", "*", "containerd", "*", "*"))
	if err != nil {
		return err
	}
	problems := make([]error, len(dirs))
	var all sync.WaitGroup
	for i, dir := range dirs {
		all.Go(func() { problems[i] = os.RemoveAll(dir) })
	}
	all.Wait()
	return errors.Join(append(problems, os.RemoveAll(c.State()))...)
}

// removeShared puts back what all clusters need, after the last one.
func removeShared() error {
	others, err := site.List()
	if err != nil || len(others) > 0 {
		return err
	}
	if err := errors.Join(host.RestoreSysctls(sysctlRecord), cgroup.RestoreControllers(controllerRecord)); err != nil {
		return err
	}
	_ = os.Remove(site.StateBase) // empty by now, or a start under another name is just beginning
	return nil
}

// removeLocks removes the lock that Down holds, and that of the indexes.
func removeLocks(ctx context.Context, name string) error {
	unlock, err := host.Lock(ctx, site.IndexLock)
	if err != nil {
		return err
	}
	defer unlock()
	err = errors.Join(os.Remove(site.IndexLock), os.Remove(lockPath(name)))
	_ = os.Remove(site.RunBase) // not empty with other clusters
	return err
}
