// Package bringup starts and removes clusters, step by step.
package bringup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/c9s-lab/c9s/test/cluster/internal/binaries"
	"github.com/c9s-lab/c9s/test/cluster/internal/cgroup"
	"github.com/c9s-lab/c9s/test/cluster/internal/control"
	"github.com/c9s-lab/c9s/test/cluster/internal/host"
	"github.com/c9s-lab/c9s/test/cluster/internal/images"
	"github.com/c9s-lab/c9s/test/cluster/internal/kube"
	"github.com/c9s-lab/c9s/test/cluster/internal/kubeconfig"
	"github.com/c9s-lab/c9s/test/cluster/internal/node"
	"github.com/c9s-lab/c9s/test/cluster/internal/pki"
	"github.com/c9s-lab/c9s/test/cluster/internal/site"
	"github.com/c9s-lab/c9s/test/cluster/internal/underlay"
	"github.com/c9s-lab/c9s/test/cluster/internal/worker"
)

// A run carries what steps share.
type run struct {
	cluster site.Cluster
	cache   binaries.Cache
	client  *kube.Client
	tell    func(string)
}

// A step is one part of bringing a cluster up. Each is safe to run again.
type step struct {
	name string
	do   func(context.Context, *run) error
}

// prepare is done before a cluster has a name's index: it changes nothing that
// belongs to a cluster.
var prepare = []step{
	{"host", func(context.Context, *run) error { return errors.Join(host.Check(), cgroup.Check()) }},
	{"packages", func(ctx context.Context, r *run) error { return host.EnsurePrograms(ctx, r.tell) }},
	{"programs", ensurePrograms},
	{"images", ensureImages},
}

// start makes the cluster.
var start = []step{
	{"host settings", func(context.Context, *run) error {
		return errors.Join(host.RaiseSysctls(sysctlRecord), cgroup.KeepControllers(controllerRecord))
	}},
	{"underlay network", func(_ context.Context, r *run) error { return underlay.Ensure(r.cluster) }},
	{"certificates", ensureAccess},
	{"registry images", linkImages},
	{"control plane", startControl},
	{"workers", startWorkers},
	{"API server ready", waitForAPIServer},
	{"cluster DNS", applyDNS},
	{"fake workers", applyFakeWorkers},
	{"workers ready", waitForWorkers},
	{"cluster DNS ready", waitForDNS},
	{"default service account", waitForServiceAccount},
}

// What the host was like, to be put back after the last cluster.
const (
	sysctlRecord     = site.RunBase + "/sysctls.json"
	controllerRecord = site.RunBase + "/cgroup-controllers"
)

func ensurePrograms(ctx context.Context, r *run) error {
	list := binaries.Needed
	if r.cluster.FakeWorkers > 0 {
		list = append(list[:len(list):len(list)], binaries.FakeWorkers...)
	}
	if err := r.cache.Ensure(ctx, list, r.tell); err != nil {
		return err
	}
	if r.cluster.FakeWorkers > 0 {
		return control.EnsureStages(ctx, r.cache)
	}
	return nil
}

func ensureImages(ctx context.Context, r *run) error {
	for _, name := range images.Essential {
		if _, err := images.Ensure(ctx, r.cache, name, r.tell); err != nil {
			return err
		}
	}
	return nil
}

func ensureAccess(_ context.Context, r *run) error {
	if err := pki.Ensure(r.cluster); err != nil {
		return err
	}
	if err := control.WriteKubeconfigs(r.cluster); err != nil {
		return err
	}
	if err := worker.WriteKubeconfigs(r.cluster); err != nil {
		return err
	}
	if !r.cluster.Merge {
		return nil
	}
	merged, err := kubeconfig.Merge(r.cluster, site.Cluster.Save)
	if err != nil {
		return err
	}
	r.tell("merged into " + merged.Merged.Into)
	r.cluster = merged
	return nil
}

func linkImages(ctx context.Context, r *run) error {
	for _, name := range images.Essential {
		if err := LoadNamed(ctx, r.cluster, name, r.tell); err != nil {
			return err
		}
	}
	return nil
}

func startControl(_ context.Context, r *run) error {
	if err := control.WriteAuditPolicy(r.cluster); err != nil {
		return err
	}
	return node.Start(r.cluster.Control(), control.Spec(r.cluster))
}

func startWorkers(_ context.Context, r *run) error {
	for _, n := range r.cluster.AllWorkers() {
		if err := startWorker(n); err != nil {
			return err
		}
	}
	return nil
}

// startWorker starts a worker unless it runs.
func startWorker(n site.Node) error {
	spec, err := worker.Spec(n)
	if err != nil {
		return err
	}
	return node.Start(n, spec)
}

// perform runs steps in order and says each with the time it took.
func perform(ctx context.Context, r *run, out io.Writer, steps []step) error {
	for _, s := range steps {
		began := time.Now()
		if err := s.do(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if took := time.Since(began); took > 50*time.Millisecond {
			fmt.Fprintf(out, "  %-24s %5.1f s\n", s.name, took.Seconds())
		}
	}
	return nil
}
