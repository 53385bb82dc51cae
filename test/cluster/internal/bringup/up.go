package bringup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/node"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
)

// Up brings a cluster up. On one that runs, it starts what has stopped; one that
// a torn start or a reboot left is removed first.
func Up(ctx context.Context, want site.Cluster, out io.Writer) error {
	if err := want.Validate(); err != nil {
		return err
	}
	if err := requireRoot(); err != nil {
		return err
	}
	unlock, err := lock(ctx, want.Name)
	if err != nil {
		return err
	}
	defer unlock()
	cache, err := binaries.Open()
	if err != nil {
		return err
	}
	began := time.Now()
	r := &run{cluster: want, cache: cache, tell: func(line string) { fmt.Fprintln(out, "  "+line) }}
	r.cluster.Cache = cache.Dir
	if err := perform(ctx, r, out, prepare); err != nil {
		return err
	}
	if r.cluster, err = settle(ctx, r.cluster, out); err != nil {
		return err
	}
	if err := perform(ctx, r, out, start); err != nil {
		return err
	}
	fmt.Fprintf(out, "cluster %s: workers ready (%d) in %.1f s\nexport KUBECONFIG=%s\n",
		r.cluster.Name, r.cluster.Workers, time.Since(began).Seconds(), r.cluster.Kubeconfig())
	return nil
}

// settle returns the record of a cluster that runs as wanted, or of a new one.
func settle(ctx context.Context, want site.Cluster, out io.Writer) (site.Cluster, error) {
	have, err := site.Load(want.Name)
	switch {
	case errors.Is(err, site.ErrNone):
		if err := remove(want); err != nil { // a folder without a record
			return want, err
		}
	case err != nil || have.BootID != site.BootID() || !controlRuns(have):
		fmt.Fprintf(out, "  cluster %s is not whole: removing what is left of it\n", want.Name)
		if err := remove(want); err != nil {
			return want, err
		}
	default:
		want.Index, want.BootID, want.Cache, want.Merged, want.Clocks = have.Index, have.BootID, have.Cache, have.Merged, have.Clocks
		want.Merge = want.Merge || have.Merge
		if changed := differs(have, want); changed != "" {
			return want, fmt.Errorf("cluster %s runs with another %s: `c9s-cluster down --name %s` first", want.Name, changed, want.Name)
		}
		return want, want.Save()
	}
	want.BootID = site.BootID()
	return site.Create(ctx, want)
}

func controlRuns(c site.Cluster) bool {
	_, running := node.Running(c.Control())
	return running
}

func differs(have, want site.Cluster) string {
	switch {
	case have.Workers != want.Workers:
		return fmt.Sprintf("number of workers (%d)", have.Workers)
	case have.MTU != want.MTU:
		return fmt.Sprintf("MTU (%d)", have.MTU)
	case have.IPv6 != want.IPv6:
		return "choice of IPv6"
	case have.FakeWorkers != want.FakeWorkers:
		return fmt.Sprintf("number of fake workers (%d)", have.FakeWorkers)
	case have.Audit != want.Audit:
		return "choice of a log of writes"
	}
	return ""
}

func lock(ctx context.Context, name string) (func(), error) {
	return host.Lock(ctx, lockPath(name))
}

func lockPath(name string) string { return filepath.Join(site.RunBase, name+".lock") }

func requireRoot() error {
	if os.Geteuid() != 0 {
		return host.Check()
	}
	return nil
}
