package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// controller holds what it knows of the lab.
type controller struct {
	client  kubernetes.Interface
	o       Options
	log     *slog.Logger
	alive   atomic.Bool
	leading atomic.Bool
	metrics *metrics
	asker   *asker
	// bell rings when something may have changed; held are the answers that wait for it.
	bell bell
	held chan struct{}
	// pods, deployments and directory are the leader's. Deployments tell a stopped node
	// from one that has no Pod yet; without the right to see them there are none.
	pods        atomic.Pointer[cache.Store]
	deployments atomic.Pointer[cache.Store]
	directory   atomic.Pointer[contract.Directory]
	topology    atomic.Pointer[contract.Topology]
	// applied are the digests of the Pods' links when the topology was last read.
	applied string
}

func newController(client kubernetes.Interface, o Options) *controller {
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	c := &controller{client: client, o: o, log: o.Log, held: make(chan struct{}, maxHeld), asker: newAsker(o.Interval, followSidecar)}
	c.metrics = newMetrics(c)
	return c
}

// look is the lab's state as it is now.
func (c *controller) look() status.Lab {
	pods := listPods(*c.pods.Load())
	d := c.directory.Load()
	var deployments []*appsv1.Deployment
	if store := c.deployments.Load(); store != nil {
		deployments = listOf[appsv1.Deployment](*store)
	}
	t := c.topology.Load()
	lab := status.Compute(status.Facts{Name: d.Lab, Namespace: c.o.Namespace, Directory: *d, Links: t.Links, LinksDigests: t.Pods, Pods: pods, Deployments: deployments,
		Sidecars: c.asker.answers(pods, time.Now()), Asked: true})
	lab.Source = "controller"
	return lab
}

// settle is how long changes are gathered before they are looked at.
const settle = 100 * time.Millisecond

// again is how soon a write that failed is tried anew.
const again = 3 * time.Second

// lead does the work while this process holds the lease.
func (c *controller) lead(ctx context.Context) error {
	c.log.Info("leading", "namespace", c.o.Namespace)
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(c.o.Namespace),
		informers.WithTransform(status.Trim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = contract.LabelComponent + "=" + contract.ComponentNode
		}))
	informer := factory.Core().V1().Pods().Informer()
	changed := make(chan struct{}, 1)
	poke := func() {
		c.bell.ring()
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.asker.hurry(o.(*corev1.Pod)); poke() },
		UpdateFunc: func(_, o any) { c.asker.hurry(o.(*corev1.Pod)); poke() },
		DeleteFunc: func(any) { poke() },
	}); err != nil {
		return err
	}
	deployments := factory.Apps().V1().Deployments().Informer()
	if _, err := deployments.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { poke() }, UpdateFunc: func(any, any) { poke() }, DeleteFunc: func(any) { poke() },
	}); err != nil {
		return err
	}
	c.asker.changed = poke
	edited, err := c.watchTopology(ctx, poke)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	p := newPublisher(c.client, c.o.Namespace, c.log)
	lost := newReplacer(c.client, p.events)
	sync := newSyncer(c.client)
	boots := newBooter()
	var due time.Time
	p.later = func(d time.Duration) { // of this goroutine alone
		if at := time.Now().Add(d); due.Before(time.Now()) || at.Before(due) {
			due = at
			time.AfterFunc(d, poke)
		}
	}
	if err := p.load(ctx); err != nil {
		return err
	}
	store, stopped := informer.GetStore(), deployments.GetStore()
	c.pods.Store(&store)
	c.deployments.Store(&stopped)
	if err := c.readDirectory(ctx); err != nil {
		return err
	}
	go c.asker.run(ctx, func() []*corev1.Pod { return listPods(store) })
	c.asker.firstAnswers(ctx, listPods(store))
	c.leading.Store(true)
	defer c.leading.Store(false)
	refresh := time.NewTicker(time.Minute)
	defer refresh.Stop()
	// What grows old changes by itself.
	aging := time.NewTicker(time.Second)
	defer aging.Stop()
	for {
		pods := listPods(store)
		// An edit of links shows in what the sidecars have applied, too.
		if applied := c.asker.applied(); edited.Swap(false) || unknown(*c.directory.Load(), pods) || applied != c.applied {
			c.applied = applied
			c.refreshDirectory(ctx)
		}
		boots.look(ctx, pods, c.asker.answers(pods, time.Now()), time.Now())
		wait, err := sync.sync(ctx, c.late(pods), time.Now())
		if wait > 0 {
			p.later(wait)
		}
		if err := errors.Join(err, lost.replace(ctx, pods), p.publish(ctx, c.look(), pods)); err != nil && ctx.Err() == nil {
			c.log.Warn("writing", "error", err)
			c.metrics.failures.Inc()
			time.AfterFunc(again, poke)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-refresh.C:
			c.refreshDirectory(ctx)
			continue
		case <-aging.C:
			continue
		case <-changed:
		}
		select { // changes come in bursts
		case <-time.After(settle):
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *controller) readDirectory(ctx context.Context) error {
	d, err := Directory(ctx, c.client, c.o.Namespace)
	if err != nil {
		return err
	}
	topology, err := Topology(ctx, c.client, c.o.Namespace)
	if err != nil {
		return err
	}
	c.directory.Store(&d)
	c.topology.Store(&topology)
	return nil
}

// refreshDirectory keeps the one that is known where it cannot be read.
func (c *controller) refreshDirectory(ctx context.Context) {
	if err := c.readDirectory(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn("refreshing", "error", err)
	}
}

func listPods(store cache.Store) []*corev1.Pod { return listOf[corev1.Pod](store) }

func listOf[T any](store cache.Store) []*T {
	if store == nil {
		return nil
	}
	list := store.List()
	out := make([]*T, len(list))
	for i, o := range list {
		out[i] = o.(*T)
	}
	return out
}

// unknown reports whether a Pod is not in the directory, which is then old.
func unknown(d contract.Directory, pods []*corev1.Pod) bool {
	known := map[string]bool{}
	for _, n := range d.Nodes {
		known[n.Pod] = true
	}
	for _, p := range pods {
		if !known[p.Labels[contract.LabelPod]] {
			return true
		}
	}
	return false
}
