package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
)

// DestroyOptions are the options of Destroy.
type DestroyOptions struct {
	// KeepData leaves PersistentVolumeClaims, and with them the namespace and the
	// allocations, so that the next deploy finds its devices' data.
	KeepData bool
	// Graceful gives devices the grace period of their Pods;
	// otherwise it is killAfter.
	Graceful bool
	// Wait waits until the objects of the lab have been deleted. Kubernetes takes at least five
	// seconds more for a namespace of the lab's own, which has nothing in it then.
	Wait bool
	Tell func(Change)
	// Step is called with the name of each step before it runs.
	Step func(name string)
	// Waiting is called if another client may be changing the lab (Claim).
	Waiting func(holder string)
}

// killAfter is the default grace period of a device in
// seconds. With 0, the API server forgets a Pod before its worker has
// stopped it.
const killAfter = 1

// kept with the data: what the next deploy reads back.
func kept(kind, name string) bool {
	return kind == "PersistentVolumeClaim" || kind == "Secret" ||
		kind == "ConfigMap" && strings.HasPrefix(name, contract.AllocationsName(0))
}

// The kinds of a lab's objects, in the order of deletion: what runs, each
// before what it creates, so that nothing is recreated (the garbage collector
// would do the same at 20 requests per second for the whole cluster); then what
// Pods use. ConfigMaps identify a lab. They come last, so that an interrupted destroy
// can be repeated.
var (
	running    = []string{"Deployment", "ReplicaSet", "Pod"}
	belongings = []string{"Service", "NetworkPolicy", "RoleBinding", "Role", "ServiceAccount", "Secret", "PersistentVolumeClaim", "ConfigMap"}
)

// removed are the API resources of all these kinds.
var removed = func() map[string]schema.GroupVersionResource {
	all := maps.Clone(rights.Resources)
	all["ReplicaSet"] = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	all["Pod"] = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	return all
}()

// destruction is one Destroy.
type destruction struct {
	client *Client
	meta   metadata.Interface
	lab    *Lab
	// patience is how long to wait without progress.
	patience time.Duration
	DestroyOptions
	// telling guards Tell, since objects of several kinds are deleted at once.
	telling sync.Mutex

	// claimed is the context of the claim, which release gives up.
	claimed context.Context
	release func()
	// whole: the namespace is being deleted, and with it the rest of the lab.
	whole bool
	// stuck is what could not be deleted. The rest is deleted nevertheless.
	stuck error
}

// Destroy deletes the objects of a lab, no matter how they were applied, and its namespace
// if the lab created it and it contains nothing else.
func (c *Client) Destroy(ctx context.Context, namespace, lab string, o DestroyOptions) error {
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	d := &destruction{client: c, meta: client, lab: &Lab{Name: lab, Namespace: namespace}, patience: patience, DestroyOptions: o}
	claimed, claim, err := c.Claim(ctx, d.lab, "destroy", o.Waiting)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return d.run(ctx, ctx, func() {}) // nobody can deploy there
	}
	if err != nil {
		return err
	}
	defer claim.Release()
	return ClaimLost(claimed, d.run(ctx, claimed, claim.Release))
}

// run runs the steps. The claim ends with a deleted namespace, since that deletes the
// Lease; all steps before that end with the claim.
func (d *destruction) run(ctx, claimed context.Context, release func()) error {
	d.claimed, d.release = claimed, release
	if err := RunSteps(ctx, d.Step, d.steps()); err != nil {
		return err
	}
	return d.stuck
}

// steps returns what destroy does, in order.
func (d *destruction) steps() []Step {
	steps := []Step{
		{"delete the namespace", d.removeNamespace},
		{"delete Deployments and Pods", d.removeRunning},
	}
	if d.Wait {
		steps = append(steps, Step{"wait until the Pods have stopped", d.awaitPods})
	}
	return append(steps, Step{"delete all other objects", d.removeBelongings})
}

// removeRunning deletes what runs.
func (d *destruction) removeRunning(ctx context.Context) error {
	ctx = d.context(ctx)
	if d.whole {
		return d.collectRunning(ctx)
	}
	return d.remove(ctx, running)
}

// context returns the context of what follows the deletion of the namespace.
func (d *destruction) context(ctx context.Context) context.Context {
	if d.whole {
		return ctx
	}
	return d.claimed
}

// awaitPods waits for the Pods. Pods that do not stop are reported at the end.
func (d *destruction) awaitPods(ctx context.Context) error {
	ctx = d.context(ctx)
	d.stuck = d.podsGone(ctx)
	if ctx.Err() != nil {
		return d.stuck
	}
	return nil
}

// removeBelongings deletes what Pods used. In a namespace that is being deleted, it does what
// Kubernetes would do later.
func (d *destruction) removeBelongings(ctx context.Context) error {
	if d.whole {
		if d.Wait && d.stuck == nil {
			d.clear(ctx)
		}
		return nil
	}
	ctx = d.context(ctx)
	d.stuck = errors.Join(d.stuck, d.remove(ctx, belongings), d.restoreLevel(ctx))
	return nil
}

// find lists the lab's objects of a kind that must be deleted, and those that are not
// terminating yet.
func (d *destruction) find(ctx context.Context, kind string) (going, there []*metav1.PartialObjectMetadata, err error) {
	list, err := d.meta.Resource(removed[kind]).Namespace(d.lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelOf(d.lab.Name)})
	if err != nil {
		return nil, nil, fmt.Errorf("listing %s: %w", removed[kind].Resource, err)
	}
	for i := range list.Items {
		live := &list.Items[i]
		if !d.owns(kind, live) || d.KeepData && kept(kind, live.Name) {
			continue
		}
		there = append(there, live)
		if live.DeletionTimestamp == nil || d.graceTooLong(kind, live) {
			going = append(going, live)
		}
	}
	return going, there, nil
}

// owns reports whether an object is the lab's. Of the marks of a lab, its ReplicaSets and Pods
// have only those of the templates of its Deployments.
func (d *destruction) owns(kind string, live metav1.Object) bool {
	if !derived(kind) {
		return owns(d.lab, live)
	}
	marks := live.GetLabels()
	component := marks[contract.LabelComponent]
	return marks[contract.LabelLab] == contract.LabelValue(d.lab.Name) && (component == contract.ComponentNode || component == contract.ComponentController)
}

// graceTooLong reports whether a terminating Pod has a longer grace period than wanted.
func (d *destruction) graceTooLong(kind string, live *metav1.PartialObjectMetadata) bool {
	return kind == "Pod" && !d.Graceful && live.DeletionGracePeriodSeconds != nil && *live.DeletionGracePeriodSeconds > killAfter
}

// remove deletes the lab's objects of the given kinds.
func (d *destruction) remove(ctx context.Context, kinds []string) error {
	var errs []error
	for _, kind := range kinds {
		going, _, err := d.find(ctx, kind)
		if err == nil {
			err = d.removeAll(ctx, kind, going)
		}
		switch {
		case !apierrors.IsForbidden(err):
		case derived(kind):
			continue
		case optional(kind):
			d.tell(Change{Action: "kept", Object: removed[kind].Resource + ", if any: you may not list them (they belong to the controller; use --no-controller to avoid them)"})
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// derived reports whether Kubernetes creates objects of a kind for others, and deletes them
// after those. A user without the right to delete them only waits longer.
func derived(kind string) bool { return kind == "ReplicaSet" || kind == "Pod" }

// optional reports whether a lab can exist without a kind that users of one namespace
// often may not list: the Roles of the controller.
func optional(kind string) bool { return kind == "Role" || kind == "RoleBinding" }

// removeAll deletes objects of one kind. Objects that no longer exist are not an error.
func (d *destruction) removeAll(ctx context.Context, kind string, going []*metav1.PartialObjectMetadata) error {
	resource := d.meta.Resource(removed[kind]).Namespace(d.lab.Namespace)
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	if kind == "Pod" && !d.Graceful {
		options.GracePeriodSeconds = new(int64(killAfter))
	}
	errs := make([]error, len(going))
	bounded.Each(len(going), requestsAtOnce, func(i int) {
		options := options
		options.Preconditions = &metav1.Preconditions{UID: &going[i].UID}
		if d.KeepData && kind == "ConfigMap" && going[i].Name == contract.ExpiryConfigMap {
			options.PropagationPolicy = new(metav1.DeletePropagationOrphan) // it owns the data
		}
		errs[i] = resource.Delete(ctx, going[i].Name, options)
	})
	for i, live := range going {
		if err := errs[i]; apierrors.IsNotFound(err) || derived(kind) && apierrors.IsForbidden(err) {
			errs[i] = nil
		}
		if change := d.change(kind, live, errs[i]); errs[i] != nil {
			errs[i] = change.error()
			d.tell(change)
		} else if !derived(kind) && !d.toldBefore(kind) {
			d.tell(change)
		}
	}
	return errors.Join(errs...)
}

func (d *destruction) change(kind string, live *metav1.PartialObjectMetadata, err error) Change {
	return Change{Action: "deleted", Object: kind + "/" + live.Name, Source: live.Annotations[contract.AnnotationSource], Err: err}
}

func (d *destruction) tell(c Change) {
	if d.Tell != nil {
		d.telling.Lock()
		defer d.telling.Unlock()
		d.Tell(c)
	}
}

// patience is how long a Pod may take to stop after its grace period, or after the last other
// one. A Pod on a worker that does not answer never stops.
const patience = 45 * time.Second

// podsGone waits until no Pod of the lab is left, or the rest will not stop.
// It also deletes Pods that a controller created in the meantime.
func (d *destruction) podsGone(ctx context.Context) error {
	var since time.Time // there were as many
	for before := -1; ; {
		began := time.Now()
		going, there, err := d.find(ctx, "Pod")
		if err != nil {
			return err
		}
		if len(there) == 0 {
			return nil
		}
		if len(there) != before {
			before, since = len(there), began
		}
		if began.Sub(since) > d.patience+grace(there) {
			return d.lost(ctx)
		}
		if err := d.removeAll(ctx, "Pod", going); err != nil {
			return err
		}
		select {
		case <-time.After(max(200*time.Millisecond, 2*time.Since(began))):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the deletion of %d Pods: %w", len(there), ctx.Err())
		}
	}
}

// grace returns the longest grace period of some Pods.
func grace(pods []*metav1.PartialObjectMetadata) time.Duration {
	var longest int64
	for _, p := range pods {
		if s := p.DeletionGracePeriodSeconds; s != nil {
			longest = max(longest, *s)
		}
	}
	return time.Duration(longest) * time.Second
}

// lost names the Pods that do not stop, and their workers.
func (d *destruction) lost(ctx context.Context) error {
	list, err := d.client.Typed.CoreV1().Pods(d.lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelOf(d.lab.Name)})
	if err != nil {
		return fmt.Errorf("some Pods do not stop, and cannot be listed: %w", err)
	}
	var names []string
	for i := range list.Items {
		p := &list.Items[i]
		names = append(names, fmt.Sprintf("%s on worker %s", p.Name, p.Spec.NodeName))
	}
	return fmt.Errorf("some Pods do not stop, for example on a worker that does not answer: %s; they are deleted when the worker returns or is removed (kubectl delete node), or at once with kubectl delete pod -n %s --force", strings.Join(names, ", "), d.lab.Namespace)
}
