package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/c9s-lab/c9s/pkg/render"
	"github.com/c9s-lab/c9s/pkg/render/own"
)

// DestroyOptions are Destroy's.
type DestroyOptions struct {
	// KeepData leaves PersistentVolumeClaims, and with them the namespace and the
	// allocations, so that the next deploy finds its devices' data.
	KeepData bool
	// Graceful gives devices the time that their Pods have to end by themselves;
	// otherwise it is killAfter.
	Graceful bool
	// Wait waits until everything is gone.
	Wait bool
	Tell func(Change)
}

// killAfter is how long a device has to end by itself where nobody asked for more, in
// seconds. With none at all the API server forgets a Pod before its worker has
// ended it.
const killAfter = 1

// kept with the data: what the next deploy reads back.
func kept(kind, name string) bool {
	return kind == "PersistentVolumeClaim" || kind == "Secret" ||
		kind == "ConfigMap" && (name == InventoryName || len(name) >= len(render.AllocationsName(0)) && name[:len(render.AllocationsName(0))] == render.AllocationsName(0))
}

// What a lab has in a cluster, in the order in which it is removed: what runs, each
// before what it makes, so that nothing starts anew (the garbage collector, which
// would see to that too, has 20 requests a second for the whole cluster); then what
// Pods use. A lab is found by its ConfigMaps: they are last, so that a destroy that
// was interrupted can be repeated.
var (
	running    = []string{"Deployment", "ReplicaSet", "Pod"}
	belongings = []string{"Service", "NetworkPolicy", "RoleBinding", "Role", "ServiceAccount", "Secret", "PersistentVolumeClaim", "ConfigMap"}
)

// strangers are kinds that c9s never makes, of which a namespace that holds one is
// somebody else's too.
var strangers = []string{"StatefulSet", "DaemonSet", "Job", "CronJob", "Ingress"}

// removed are the API resources of all these kinds.
var removed = map[string]schema.GroupVersionResource{
	"ReplicaSet":  {Group: "apps", Version: "v1", Resource: "replicasets"},
	"Pod":         {Version: "v1", Resource: "pods"},
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"DaemonSet":   {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"Job":         {Group: "batch", Version: "v1", Resource: "jobs"},
	"CronJob":     {Group: "batch", Version: "v1", Resource: "cronjobs"},
	"Ingress":     {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
}

func init() { maps.Copy(removed, resources) }

// destruction is one Destroy.
type destruction struct {
	client *Client
	meta   metadata.Interface
	lab    *Lab
	DestroyOptions
}

// Destroy removes a lab's objects, however they were applied, and its namespace
// where the lab made it and nobody else has anything in it.
func (c *Client) Destroy(ctx context.Context, namespace, lab string, o DestroyOptions) error {
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	d := &destruction{client: c, meta: client, lab: &Lab{Name: lab, Namespace: namespace}, DestroyOptions: o}
	return d.run(ctx)
}

func (d *destruction) run(ctx context.Context) error {
	if err := d.remove(ctx, running); err != nil {
		return err
	}
	if d.Wait {
		if err := d.podsGone(ctx); err != nil {
			return err
		}
	}
	if !d.KeepData {
		if gone, err := d.removeNamespace(ctx); gone || err != nil {
			return err
		}
	}
	return d.remove(ctx, belongings)
}

// find lists the lab's objects of a kind that are to go and are not going yet, and tells
// how many are there in all.
func (d *destruction) find(ctx context.Context, kind string) (going []*metav1.PartialObjectMetadata, there int, err error) {
	list, err := d.meta.Resource(removed[kind]).Namespace(d.lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{"app.kubernetes.io/managed-by": "c9s"}.String()})
	if err != nil {
		return nil, 0, fmt.Errorf("listing %s: %w", removed[kind].Resource, err)
	}
	for i := range list.Items {
		live := &list.Items[i]
		if !owns(d.lab, live) || d.KeepData && kept(kind, live.Name) {
			continue
		}
		there++
		if live.DeletionTimestamp == nil || d.hurries(kind, live) {
			going = append(going, live)
		}
	}
	return going, there, nil
}

// hurries tells that a Pod that is going has more time than it is to have.
func (d *destruction) hurries(kind string, live *metav1.PartialObjectMetadata) bool {
	return kind == "Pod" && !d.Graceful && live.DeletionGracePeriodSeconds != nil && *live.DeletionGracePeriodSeconds > killAfter
}

// remove deletes all of the lab that is of some kinds.
func (d *destruction) remove(ctx context.Context, kinds []string) error {
	var errs []error
	for _, kind := range kinds {
		going, _, err := d.find(ctx, kind)
		if err == nil {
			err = d.removeAll(ctx, kind, going)
		}
		if derived(kind) && apierrors.IsForbidden(err) {
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// derived tells that Kubernetes makes objects of a kind for others, and removes them
// after those, so that who may not do it only waits longer.
func derived(kind string) bool { return kind == "ReplicaSet" || kind == "Pod" }

// deletesAtOnce bounds the requests that are under way.
const deletesAtOnce = 16

// removeAll deletes objects of one kind. What is gone already is no error.
func (d *destruction) removeAll(ctx context.Context, kind string, going []*metav1.PartialObjectMetadata) error {
	resource := d.meta.Resource(removed[kind]).Namespace(d.lab.Namespace)
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	if kind == "Pod" && !d.Graceful {
		options.GracePeriodSeconds = new(int64(killAfter))
	}
	errs := make([]error, len(going))
	var wg sync.WaitGroup
	slots := make(chan struct{}, deletesAtOnce)
	for i, live := range going {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			options := options
			options.Preconditions = &metav1.Preconditions{UID: &live.UID}
			errs[i] = resource.Delete(ctx, live.Name, options)
		})
	}
	wg.Wait()
	for i, live := range going {
		if err := errs[i]; apierrors.IsNotFound(err) || derived(kind) && apierrors.IsForbidden(err) {
			errs[i] = nil
		}
		if change := d.change(kind, live, errs[i]); errs[i] != nil {
			errs[i] = change.error()
			d.tell(change)
		} else if !derived(kind) {
			d.tell(change)
		}
	}
	return errors.Join(errs...)
}

func (d *destruction) change(kind string, live *metav1.PartialObjectMetadata, err error) Change {
	return Change{Action: "deleted", Object: kind + "/" + live.Name, Source: live.Annotations[own.AnnotationSource], Err: err}
}

func (d *destruction) tell(c Change) {
	if d.Tell != nil {
		d.Tell(c)
	}
}

// podsGone waits until no Pod of the lab is left. One that a controller made before it
// heard of the lab's end is removed too.
func (d *destruction) podsGone(ctx context.Context) error {
	for {
		began := time.Now()
		going, there, err := d.find(ctx, "Pod")
		if err != nil {
			return err
		}
		if there == 0 {
			return nil
		}
		if err := d.removeAll(ctx, "Pod", going); err != nil {
			return err
		}
		select {
		case <-time.After(max(200*time.Millisecond, 2*time.Since(began))):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the end of %d Pods: %w", there, ctx.Err())
		}
	}
}

// removeNamespace removes a namespace that the lab's deploy made, and so all that is
// left of the lab, if nothing of anybody else is in it. It tells whether it did.
func (d *destruction) removeNamespace(ctx context.Context) (bool, error) {
	namespaces := d.client.Typed.CoreV1().Namespaces()
	ns, err := namespaces.Get(ctx, d.lab.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if ns.Labels["app.kubernetes.io/managed-by"] != "c9s" || ns.Annotations[own.AnnotationLabName] != d.lab.Name {
		return false, nil
	}
	mine, busy, err := d.inNamespace(ctx)
	if err != nil {
		return false, err
	}
	if busy == "" {
		err := namespaces.Delete(ctx, d.lab.Namespace, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ns.UID}})
		switch {
		case apierrors.IsForbidden(err):
			busy = "you may not delete it"
		case err != nil && !apierrors.IsNotFound(err):
			return false, fmt.Errorf("namespace %s: %w", d.lab.Namespace, err)
		}
	}
	if busy != "" {
		d.tell(Change{Action: "kept", Object: "Namespace/" + d.lab.Namespace + " (" + busy + ")"})
		return false, nil
	}
	for _, change := range mine {
		d.tell(change)
	}
	d.tell(Change{Action: "deleted", Object: "Namespace/" + d.lab.Namespace})
	if !d.Wait {
		return true, nil
	}
	return true, d.namespaceGone(ctx)
}

func (d *destruction) namespaceGone(ctx context.Context) error {
	var left string
	for {
		ns, err := d.client.Typed.CoreV1().Namespaces().Get(ctx, d.lab.Namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			left = leftIn(ns)
		case ctx.Err() == nil:
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the end of namespace %s%s: %w", d.lab.Namespace, left, ctx.Err())
		}
	}
}

// leftIn is what Kubernetes says of why a namespace does not go.
func leftIn(ns *corev1.Namespace) string {
	var out string
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			out += "; " + c.Message
		}
	}
	return out
}

// inNamespace lists what is left of the lab in its namespace, or says why the
// namespace is not the lab's alone.
func (d *destruction) inNamespace(ctx context.Context) (mine []Change, busy string, err error) {
	for _, kind := range slices.Concat(running, belongings, strangers) {
		list, err := d.meta.Resource(removed[kind]).Namespace(d.lab.Namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return nil, "you may not see whether it holds a " + kind, nil
		case apierrors.IsNotFound(err):
			continue // the cluster does not serve such
		case err != nil:
			return nil, "", fmt.Errorf("listing %s: %w", removed[kind].Resource, err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			switch {
			case item.DeletionTimestamp != nil || kubernetesOwn(kind, item.Name):
			case !owns(d.lab, item):
				return nil, "it holds " + kind + " " + item.Name, nil
			case !derived(kind):
				mine = append(mine, d.change(kind, item, nil))
			}
		}
	}
	return mine, "", nil
}

// kubernetesOwn tells what is in every namespace.
func kubernetesOwn(kind, name string) bool {
	return kind == "ConfigMap" && name == "kube-root-ca.crt" || kind == "ServiceAccount" && name == "default"
}
