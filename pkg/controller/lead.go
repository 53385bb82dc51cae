package controller

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/c9s-lab/c9s/pkg/links"
	"github.com/c9s-lab/c9s/pkg/render/own"
	"github.com/c9s-lab/c9s/pkg/status"
	"github.com/c9s-lab/c9s/sidecar/api"
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

	mu     sync.Mutex
	latest status.Lab
}

func newController(client kubernetes.Interface, o Options) *controller {
	if o.Interval == 0 {
		o.Interval = 5 * time.Second
	}
	c := &controller{client: client, o: o, log: o.Log, metrics: newMetrics()}
	c.asker = newAsker(o.Interval, func(ctx context.Context, pod *corev1.Pod) (api.Status, error) {
		addr, err := podAddress(pod)
		if err != nil {
			return api.Status{}, err
		}
		return api.Fetch(ctx, nil, addr)
	})
	return c
}

// settle is how long changes are gathered before they are looked at.
const settle = 300 * time.Millisecond

// again is how soon a write that failed is tried anew.
const again = 3 * time.Second

// lead does the work while this process holds the lease.
func (c *controller) lead(ctx context.Context) error {
	c.log.Info("leading", "namespace", c.o.Namespace)
	c.leading.Store(true)
	defer c.leading.Store(false)
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace(c.o.Namespace),
		informers.WithTransform(trim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = own.LabelComponent + "=" + own.ComponentNode
		}))
	informer := factory.Core().V1().Pods().Informer()
	changed := make(chan struct{}, 1)
	poke := func() {
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
	c.asker.changed = poke
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	p := newPublisher(c.client, c.o.Namespace, c.log)
	if err := p.load(ctx); err != nil {
		return err
	}
	go c.asker.run(ctx, func() []*corev1.Pod { return listPods(informer.GetStore()) })
	refresh := time.NewTicker(time.Minute)
	defer refresh.Stop()
	directory, err := Directory(ctx, c.client, c.o.Namespace)
	if err != nil {
		return err
	}
	for {
		pods := listPods(informer.GetStore())
		if unknown(directory, pods) {
			if d, err := Directory(ctx, c.client, c.o.Namespace); err == nil {
				directory = d
			}
		}
		lab := status.Compute(status.Facts{
			Name: directory.Lab, Namespace: c.o.Namespace, Directory: directory, Pods: pods, Sidecars: c.asker.answers(pods),
		})
		lab.Source = "controller"
		c.set(lab)
		c.metrics.set(lab)
		if err := p.publish(ctx, lab, pods); err != nil && ctx.Err() == nil {
			c.log.Warn("writing", "error", err)
			c.metrics.failures.Inc()
			time.AfterFunc(again, poke)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-refresh.C:
			if d, err := Directory(ctx, c.client, c.o.Namespace); err == nil {
				directory = d
			}
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

// trim drops what takes memory and is of no use here.
func trim(o any) (any, error) {
	if pod, ok := o.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		pod.Spec.Volumes, pod.Spec.InitContainers = nil, nil
		pod.Spec.Affinity, pod.Spec.Tolerations = nil, nil
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i] = corev1.Container{Name: pod.Spec.Containers[i].Name, Image: pod.Spec.Containers[i].Image}
		}
	}
	return o, nil
}

func listPods(store cache.Store) []*corev1.Pod {
	list := store.List()
	out := make([]*corev1.Pod, len(list))
	for i, o := range list {
		out[i] = o.(*corev1.Pod)
	}
	return out
}

// unknown tells that a Pod is not in the directory, which is then old.
func unknown(d links.Directory, pods []*corev1.Pod) bool {
	known := map[string]bool{}
	for _, n := range d.Nodes {
		known[n.Pod] = true
	}
	for _, p := range pods {
		if !known[p.Labels[own.LabelPod]] {
			return true
		}
	}
	return false
}

func (c *controller) set(l status.Lab) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latest = l
}

func (c *controller) get() status.Lab {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}
