package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// PodProgress is how far one Pod of a lab is.
type PodProgress struct {
	// Pod is the name of the Pod's objects, Nodes the nodes in it as written.
	Pod   string
	Nodes []string
	// Source is the primary's line in the topology.
	Source string
	// PodName is the present Pod's own name; "" for none.
	PodName string
	// Worker is where it is; "" for nowhere yet.
	Worker string
	status.Progress
	// Unsettled reports whether Kubernetes has not looked at the Deployment since its last
	// change: the Pod may have to go yet, or not.
	Unsettled bool
}

// Watcher follows a lab's Deployments and Pods through one watch each.
type Watcher struct {
	namespace, lab string
	deployments    cache.Store
	pods           cache.Store
	events         cache.Store
	changed        chan struct{}
}

// Watch starts to follow a lab, and returns when it knows the present state. It
// ends with ctx.
func (c *Client) Watch(ctx context.Context, namespace, lab string) (*Watcher, error) {
	w := &Watcher{namespace: namespace, lab: lab, changed: make(chan struct{}, 1)}
	ofLab := informers.NewSharedInformerFactoryWithOptions(c.Typed, 0, informers.WithNamespace(namespace), informers.WithTransform(status.Trim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = nodeSelector(lab)
		}))
	warnings := informers.NewSharedInformerFactoryWithOptions(c.Typed, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "type=" + corev1.EventTypeWarning }))
	refused := make(chan error, 1)
	for _, f := range []struct {
		informer cache.SharedIndexInformer
		store    *cache.Store
		needed   bool
	}{
		{ofLab.Apps().V1().Deployments().Informer(), &w.deployments, true},
		{ofLab.Core().V1().Pods().Informer(), &w.pods, true},
		{warnings.Core().V1().Events().Informer(), &w.events, false}, // they only explain
	} {
		*f.store = f.informer.GetStore()
		if _, err := f.informer.AddEventHandler(w.handler()); err != nil {
			return nil, err
		}
		err := f.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			if f.needed && apierrors.IsForbidden(err) {
				select {
				case refused <- err:
				default:
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	ofLab.Start(ctx.Done())
	warnings.Start(ctx.Done())
	synced := make(chan bool, 1)
	go func() {
		all := true
		for _, ok := range ofLab.WaitForCacheSync(ctx.Done()) {
			all = all && ok
		}
		synced <- all
	}()
	select {
	case err := <-refused:
		return nil, fmt.Errorf("watching the lab (requires the right to list and watch Deployments and Pods): %w", err)
	case all := <-synced:
		if !all {
			return nil, ctx.Err()
		}
	}
	return w, nil
}

// handler notes that something changed, once for many.
func (w *Watcher) handler() cache.ResourceEventHandlerFuncs {
	poke := func() {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { poke() }, UpdateFunc: func(any, any) { poke() }, DeleteFunc: func(any) { poke() },
	}
}

// Changed reports whether Progress may say something new.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Progress is the state of all Pods of the lab, sorted by name.
func (w *Watcher) Progress() []PodProgress {
	pods := map[string]*corev1.Pod{}
	for _, o := range w.pods.List() {
		pod := o.(*corev1.Pod)
		name := pod.Labels[contract.LabelPod]
		if old := pods[name]; old == nil || status.Newer(pod, old) {
			pods[name] = pod
		}
	}
	events := w.warnings()
	var out []PodProgress
	for _, o := range w.deployments.List() {
		d := o.(*appsv1.Deployment)
		p := PodProgress{
			Pod: d.Name, Nodes: strings.Split(d.Annotations[contract.AnnotationNodeName], ","),
			Source: d.Annotations[contract.AnnotationSource],
		}
		pod := pods[d.Name]
		var about []corev1.Event
		if pod != nil {
			p.PodName, p.Worker = pod.Name, pod.Spec.NodeName
			about = events[pod.Name]
		}
		p.Unsettled = !observed(d)
		switch {
		case pod != nil && (observed(d) && !rolledOut(d) || pod.CreationTimestamp.Before(&d.CreationTimestamp)):
			p.Progress = status.Progress{State: status.StateTerminating} // it is of an older template, whatever became of it
		case pod == nil && !(observed(d) && rolledOut(d)):
			p.Progress = status.Progress{State: status.StatePending}
		default:
			p.Progress = status.Of(d, pod, about)
		}
		if p.Unsettled { // what became of the Pod may be over in a moment
			p.Certain, p.Doubtful = false, false
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b PodProgress) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// observed reports whether Kubernetes' controller has seen the Deployment as it is. A new
// one has nothing that it would do to an older Pod.
func observed(d *appsv1.Deployment) bool {
	return d.Generation == 1 || d.Status.ObservedGeneration >= d.Generation
}

// rolledOut reports whether an observed Deployment's Pod is of its present template. One
// that never had another has no other Pod, whatever its controller has reported yet.
func rolledOut(d *appsv1.Deployment) bool {
	return d.Generation == 1 || d.Status.UpdatedReplicas >= d.Status.Replicas
}

// warnings are the warning events by the Pod they are about, the latest last.
func (w *Watcher) warnings() map[string][]corev1.Event {
	out := map[string][]corev1.Event{}
	for _, o := range w.events.List() {
		e := o.(*corev1.Event)
		if e.InvolvedObject.Kind == "Pod" {
			out[e.InvolvedObject.Name] = append(out[e.InvolvedObject.Name], *e)
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b corev1.Event) int { return when(a).Compare(when(b)) })
	}
	return out
}

func when(e corev1.Event) time.Time {
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}
