// Package controller is the thin, optional part of c9s inside a lab's namespace:
// it watches the lab's Pods, asks their sidecars, and reports. It keeps the Pods'
// addresses for the directory, the lab's status, Events on nodes, and metrics.
// Traffic does not depend on it, and a lab at rest makes it write nothing but its
// lease.
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Options are a controller's settings.
type Options struct {
	Namespace string
	// Identity is the Pod's own name, which holds the lease.
	Identity string
	// Address is for probes, the lab's status and metrics, Private (loopback) for
	// profiles.
	Address, Private string
	// Interval is how often a sidecar is asked that answers at once although it has nothing new.
	Interval time.Duration
	// Expires is set for a lab that expires.
	Expires bool
	Log     *slog.Logger
}

// Lease times. Nothing hurries: without a leader labs go on.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 5 * time.Second
)

// Run is the controller until ctx ends.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c := newController(client, o)
	servers := []*http.Server{c.public(), c.private()}
	failed := make(chan error, len(servers))
	for _, s := range servers {
		go func() {
			if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serving %s: %w", s.Addr, err)
			}
		}()
		defer s.Close()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	c.alive.Store(true)
	if err := c.run(ctx); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// run leads whenever this process is elected, until ctx ends. An election that is lost,
// as where the API server is away for a while, is followed by the next: a restart of the
// process would forget what the sidecars have said.
func (c *controller) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.term(ctx); err != nil {
			return err
		}
	}
	return nil
}

// leaseVersion reads the resourceVersion of the controller's own Lease.
func (c *controller) leaseVersion(ctx context.Context) (string, error) {
	lease, err := c.client.CoordinationV1().Leases(c.o.Namespace).Get(ctx, contract.ControllerName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return lease.ResourceVersion, nil
}

// term waits to be elected, and leads until the election is lost or ctx ends.
func (c *controller) term(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	terms := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.o.Namespace, Name: contract.ControllerName},
			Client:     c.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.o.Identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true, Name: contract.ControllerName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) { terms <- term },
			OnStoppedLeading: func() { c.log.Info("not the leader any more") },
		},
	})
	if err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		elector.Run(ctx)
	}()
	select {
	case term := <-terms:
		led, abandon := context.WithCancelCause(term)
		go func() {
			if err := untilRollback(led, lookBack, c.leaseVersion); err != nil {
				c.log.Warn("beginning again", "reason", err)
				abandon(err)
			}
		}()
		if c.o.Expires {
			go (&expirer{client: c.client, namespace: c.o.Namespace, log: c.log}).run(led)
		}
		err := c.lead(led)
		failed := err != nil && led.Err() == nil
		abandon(nil)
		if failed {
			return err
		}
		end()
		<-over
	case <-over:
	}
	return nil
}
