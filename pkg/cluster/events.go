package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Event is something that happened to a node's container or to an interface of it.
type Event struct {
	Time      time.Time
	Container Container
	// Action is create, start, die, destroy or "health_status: healthy" for containers, as in
	// Docker, and that of a contract.InterfaceEvent for interfaces. For a container that was
	// there before it is the state.
	Action string
	// Initial reports whether it describes what was there before.
	Initial bool
	// ExitCode is set for die.
	ExitCode int32
	// Interface is nil for an event of a container.
	Interface *contract.InterfaceFacts
	// Declared is what the lab has of the interface, nil for one that is not the lab's.
	Declared *contract.Interface
	// Before are the counters at the last ActionStats, Interval the time since.
	Before   contract.InterfaceCounters
	Interval time.Duration
}

// EventOptions choose the events.
type EventOptions struct {
	// Lab is the zero value for all labs of Namespace, which is "" for all namespaces.
	Lab       Found
	Namespace string
	// Initial also reports what is there at the beginning.
	Initial bool
	// Stats reports the counters of interfaces this often; 0 for never.
	Stats time.Duration
}

// Events calls each for every event until ctx is done. Containers are followed by one watch of
// Pods, interfaces by one stream from each Pod's sidecar.
func (c *Client) Events(ctx context.Context, o EventOptions, each func(Event)) error {
	selector := labels.Set{contract.LabelComponent: contract.ComponentNode}.String()
	if o.Lab.Name != "" {
		o.Namespace, selector = o.Lab.Namespace, nodeSelector(o.Lab.Name)
	}
	_, err := c.Typed.CoreV1().Pods(o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if apierrors.IsForbidden(err) && o.Namespace == "" {
		o.Namespace = c.Namespace
	} else if err != nil {
		return fmt.Errorf("watching Pods (requires the right to list and watch them): %w", err)
	}
	w := &eventWatch{client: c, o: o, each: each, known: map[types.NamespacedName][]Container{}, watched: map[types.UID]*watchedPod{}}
	defer w.group.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.ctx = ctx
	factory := informers.NewSharedInformerFactoryWithOptions(c.Typed, 0, informers.WithNamespace(o.Namespace),
		informers.WithTweakListOptions(func(l *metav1.ListOptions) { l.LabelSelector = selector }))
	informer := factory.Core().V1().Pods().Informer()
	refused := make(chan error, 1)
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) {
			select {
			case refused <- err:
			default:
			}
		}
	})
	if err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(w); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	select {
	case err := <-refused:
		return fmt.Errorf("watching Pods (requires the right to list and watch them): %w", err)
	case <-ctx.Done():
	}
	factory.Shutdown()
	return nil
}

// eventWatch turns changes of Pods into events.
type eventWatch struct {
	client *Client
	ctx    context.Context
	o      EventOptions
	group  sync.WaitGroup

	report sync.Mutex // one event at a time
	each   func(Event)

	mu      sync.Mutex
	known   map[types.NamespacedName][]Container // the nodes of a Deployment, without their Pods
	watched map[types.UID]*watchedPod
}

// watchedPod is a Pod whose interfaces are followed.
type watchedPod struct{ end context.CancelFunc }

func (w *eventWatch) emit(e Event) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	w.report.Lock()
	defer w.report.Unlock()
	if w.ctx.Err() == nil {
		w.each(e)
	}
}

// OnAdd is called for a Pod that is there, or new.
func (w *eventWatch) OnAdd(object any, initial bool) {
	pod := object.(*corev1.Pod)
	for _, n := range w.nodes(pod) {
		for _, e := range containerEvents(n, nil, pod) {
			if initial {
				e = Event{Container: e.Container, Action: e.Container.Word(), Initial: true}
				if w.o.Initial {
					w.emit(e)
				}
				break
			}
			w.emit(e)
		}
	}
	w.follow(pod, initial)
}

// OnUpdate is called for a Pod that has changed.
func (w *eventWatch) OnUpdate(before, object any) {
	pod := object.(*corev1.Pod)
	for _, n := range w.nodes(pod) {
		for _, e := range containerEvents(n, before.(*corev1.Pod), pod) {
			w.emit(e)
		}
	}
	w.follow(pod, false)
}

// OnDelete is called for a Pod that is gone.
func (w *eventWatch) OnDelete(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	if watched := w.watched[pod.UID]; watched != nil {
		watched.end()
		delete(w.watched, pod.UID)
	}
	w.mu.Unlock()
	for _, n := range w.nodes(pod) {
		c := withPod(n, pod)
		if c.Running() {
			w.emit(Event{Container: c, Action: "die", ExitCode: 137}) // its end is not reported any more
		}
		w.emit(Event{Container: c, Action: "destroy"})
	}
}

// nodes returns the nodes of a Pod. It reads the lab of one that is not known.
func (w *eventWatch) nodes(pod *corev1.Pod) []Container {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[contract.LabelPod]}
	w.mu.Lock()
	defer w.mu.Unlock()
	if list, ok := w.known[key]; ok {
		return list
	}
	labs, err := w.client.Labs(w.ctx, pod.Namespace)
	if err != nil {
		return nil
	}
	for _, lab := range labs {
		if contract.LabelValue(lab.Name) != pod.Labels[contract.LabelLab] {
			continue
		}
		list, err := w.client.Containers(w.ctx, lab)
		if err != nil {
			return nil
		}
		for _, n := range list {
			at := types.NamespacedName{Namespace: pod.Namespace, Name: n.Deployment}
			if _, there := w.known[at]; !there || at == key {
				w.known[at] = append(w.known[at], n)
			}
		}
	}
	return w.known[key]
}

// withPod is a node as a Pod has it.
func withPod(n Container, pod *corev1.Pod) Container {
	directory := contract.Directory{Nodes: []contract.DirectoryNode{n.Directory}}
	return NewContainer(n.Lab, n.Node, n.Source, directory, pod)
}

// containerEvents returns what happened to the container of a node between two states of its
// Pod; before is nil for a new one.
func containerEvents(n Container, before, after *corev1.Pod) []Event {
	now := withPod(n, after)
	var out []Event
	add := func(action string) { out = append(out, Event{Container: now, Action: action}) }
	var was Container
	if before == nil {
		add("create")
	} else {
		was = withPod(n, before)
	}
	switch {
	case now.Running() && (!was.Running() || was.ID != now.ID):
		if was.Running() {
			out = append(out, Event{Container: was, Action: "die", ExitCode: lastExit(now)})
		}
		add("start")
	case was.Running() && !now.Running():
		out = append(out, Event{Container: was, Action: "die", ExitCode: lastExit(now)})
	}
	healthy := func(c Container) bool { return c.Running() && c.State.Ready }
	switch {
	case healthy(now) && !healthy(was):
		add("health_status: healthy")
	case healthy(was) && now.Running() && !healthy(now):
		add("health_status: unhealthy")
	}
	return out
}

// lastExit is the exit code of the run of a container that has ended.
func lastExit(c Container) int32 {
	switch {
	case c.State == nil:
		return 0
	case c.State.State.Terminated != nil:
		return c.State.State.Terminated.ExitCode
	case c.State.LastTerminationState.Terminated != nil:
		return c.State.LastTerminationState.Terminated.ExitCode
	}
	return 0
}

// Word is the state of a container in Docker's words.
func (c *Container) Word() string {
	switch {
	case c.Running():
		return "running"
	case c.Pod != nil && !status.Ended(c.Pod) && (c.State == nil || c.State.State.Terminated == nil && c.State.LastTerminationState.Terminated == nil):
		return "created"
	case c.Pod != nil && c.State != nil && c.State.State.Waiting != nil:
		return "restarting"
	}
	return "exited"
}

// follow begins to follow the interfaces of a Pod whose sidecar runs.
func (w *eventWatch) follow(pod *corev1.Pod, initial bool) {
	if !sidecarRuns(pod) || pod.DeletionTimestamp != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched[pod.UID] != nil {
		return
	}
	ctx, end := context.WithCancel(w.ctx)
	w.watched[pod.UID] = &watchedPod{end}
	w.group.Go(func() {
		defer end()
		w.followInterfaces(ctx, pod, initial && w.o.Initial)
	})
}

// followAgain is the time after which the stream of a sidecar that has ended is opened again.
const followAgain = 2 * time.Second

// followInterfaces reports the events of a Pod's interfaces until ctx is done.
func (w *eventWatch) followInterfaces(ctx context.Context, pod *corev1.Pod, initial bool) {
	nodes := w.nodes(pod)
	if len(nodes) == 0 {
		return
	}
	f := &interfaceEventsOf{counters: map[int]contract.InterfaceEvent{}}
	for ctx.Err() == nil {
		links, err := w.client.Links(ctx, nodes[0].Lab, nodes[0].Deployment)
		if err != nil {
			links = &contract.Links{}
		}
		err = w.client.WatchInterfaces(ctx, pod.Namespace, pod.Labels[contract.LabelPod], w.o.Stats, func(e contract.InterfaceEvent) {
			for _, n := range nodes {
				if out, ok := f.event(withPod(n, pod), links, e); ok && (!out.Initial || initial) {
					w.emit(out)
				}
			}
			f.remember(e)
		})
		if errors.Is(err, context.Canceled) {
			return
		}
		initial = false // it was told
		select {
		case <-ctx.Done():
		case <-time.After(followAgain):
		}
	}
}

// interfaceEventsOf turns what a sidecar reports into events.
type interfaceEventsOf struct {
	counters map[int]contract.InterfaceEvent // the last one with counters, by index
}

func (f *interfaceEventsOf) event(n Container, links *contract.Links, e contract.InterfaceEvent) (Event, bool) {
	if e.Action == contract.ActionKnown {
		return Event{}, false
	}
	out := Event{Time: e.Time, Container: n, Action: e.Action, Initial: e.Action == contract.ActionSnapshot, Interface: &e.Interface}
	for i := range links.Interfaces {
		if links.Interfaces[i].Name == e.Interface.Name {
			out.Declared = &links.Interfaces[i]
		}
	}
	if e.Action == contract.ActionStats {
		before, ok := f.counters[e.Interface.Index]
		out.Before, out.Interval = before.Interface.Counters, e.Time.Sub(before.Time)
		return out, ok && out.Interval > 0
	}
	return out, true
}

// remember keeps the counters for the rates of the next event.
func (f *interfaceEventsOf) remember(e contract.InterfaceEvent) {
	switch e.Action {
	case contract.ActionStats, contract.ActionSnapshot:
		f.counters[e.Interface.Index] = e
	case contract.ActionDelete:
		delete(f.counters, e.Interface.Index)
	}
}
