package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
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
	// Wait waits until everything has been deleted.
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
	steps = append(steps, Step{"delete all other objects", d.removeBelongings})
	if d.Wait {
		steps = append(steps, Step{"wait until the namespace is deleted", d.awaitNamespace})
	}
	return steps
}

// removeRunning deletes what runs. In a namespace that is being deleted, nothing is recreated,
// so the order does not matter.
func (d *destruction) removeRunning(ctx context.Context) error {
	ctx = d.context(ctx)
	if !d.whole {
		return d.remove(ctx, running)
	}
	errs := make([]error, len(running))
	bounded.Each(len(running), len(running), func(i int) { errs[i] = d.remove(ctx, running[i:i+1]) })
	return errors.Join(errs...)
}

// removeNamespace deletes the inventory of older versions, and the namespace if it is the
// lab's alone. Kubernetes waits five seconds before it looks at the contents of a terminating
// namespace. Meanwhile the Pods stop.
func (d *destruction) removeNamespace(context.Context) (err error) {
	if _, err := d.client.DropInventory(d.claimed, d.lab); err != nil || d.KeepData {
		return err
	}
	if d.whole, err = d.deleteNamespace(d.claimed); d.whole {
		d.release()
	}
	return err
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

// removeBelongings deletes what the namespace does not take with it.
func (d *destruction) removeBelongings(ctx context.Context) error {
	if d.whole {
		return nil
	}
	ctx = d.context(ctx)
	d.stuck = errors.Join(d.stuck, d.remove(ctx, belongings), d.restoreLevel(ctx))
	return nil
}

func (d *destruction) awaitNamespace(ctx context.Context) error {
	if !d.whole || d.stuck != nil {
		return nil
	}
	return d.client.namespaceGone(ctx, d.lab.Namespace)
}

// restoreLevel restores the Pod Security level of the namespace from before the deploy.
func (d *destruction) restoreLevel(ctx context.Context) error {
	switch restored, err := d.client.restoreLevel(ctx, d.lab); {
	case apierrors.IsForbidden(err):
		d.tell(Change{Action: "kept", Object: fmt.Sprintf("label %s of namespace %s, which a deploy set (you may not patch the namespace)", podSecurity, d.lab.Namespace)})
	case err != nil:
		return fmt.Errorf("restoring the Pod Security level of namespace %s: %w", d.lab.Namespace, err)
	case restored:
		d.tell(Change{Action: "removed", Object: fmt.Sprintf("label %s=%s from namespace %s, which a deploy set", podSecurity, privileged, d.lab.Namespace)})
	}
	return nil
}

// find lists the lab's objects of a kind that must be deleted, and those that are not
// terminating yet.
func (d *destruction) find(ctx context.Context, kind string) (going, there []*metav1.PartialObjectMetadata, err error) {
	list, err := d.meta.Resource(removed[kind]).Namespace(d.lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labSelector(d.lab.Name)})
	if err != nil {
		return nil, nil, fmt.Errorf("listing %s: %w", removed[kind].Resource, err)
	}
	for i := range list.Items {
		live := &list.Items[i]
		if !owns(d.lab, live) || d.KeepData && kept(kind, live.Name) {
			continue
		}
		there = append(there, live)
		if live.DeletionTimestamp == nil || d.graceTooLong(kind, live) {
			going = append(going, live)
		}
	}
	return going, there, nil
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
		} else if !derived(kind) {
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
	list, err := d.client.Typed.CoreV1().Pods(d.lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelLab + "=" + contract.LabelValue(d.lab.Name)})
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

// deleteNamespace deletes the namespace, and with it the rest of the lab,
// if deploy created it and it contains nothing else. It reports whether it did.
func (d *destruction) deleteNamespace(ctx context.Context) (bool, error) {
	namespaces := d.client.Typed.CoreV1().Namespaces()
	ns, err := namespaces.Get(ctx, d.lab.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !owns(d.lab, ns) {
		return false, nil
	}
	if ns.DeletionTimestamp != nil { // by an interrupted destroy
		return true, nil
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
	return true, nil
}

// namespaceGone waits until a namespace has been deleted.
func (c *Client) namespaceGone(ctx context.Context, namespace string) error {
	var left string
	for {
		ns, err := c.Typed.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && ns.DeletionTimestamp == nil: // the latter is a new one
			return nil
		case err == nil:
			left = leftIn(ns)
		case ctx.Err() == nil:
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waiting for the deletion of namespace %s%s: %w", namespace, left, ctx.Err())
		}
	}
}

// leftIn returns Kubernetes' reason why a namespace is still terminating.
func leftIn(ns *corev1.Namespace) string {
	var out string
	for _, c := range ns.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			out += "; " + c.Message
		}
	}
	return out
}

// inNamespace lists the remaining objects of the lab in its namespace, or returns why the
// namespace contains other objects. It checks every resource that the cluster serves.
func (d *destruction) inNamespace(ctx context.Context) (mine []Change, busy string, err error) {
	served, err := discovery.ServerPreferredNamespacedResources(d.client.Typed.Discovery())
	if err != nil {
		return nil, fmt.Sprintf("its contents cannot all be listed: %v", err), nil
	}
	resources := listable(served)
	lists := make([]*metav1.PartialObjectMetadataList, len(resources))
	errs := make([]error, len(resources))
	bounded.Each(len(resources), requestsAtOnce, func(i int) {
		lists[i], errs[i] = d.meta.Resource(resources[i].resource).Namespace(d.lab.Namespace).List(ctx, metav1.ListOptions{})
	})
	for i, r := range resources {
		switch err := errs[i]; {
		case apierrors.IsForbidden(err):
			return nil, "you may not check whether it contains a " + r.kind, nil
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			continue
		case err != nil:
			return nil, "", fmt.Errorf("listing %s: %w", r.resource.Resource, err)
		}
		for j := range lists[i].Items {
			item := &lists[i].Items[j]
			switch {
			case item.DeletionTimestamp != nil || metav1.GetControllerOf(item) != nil || kubernetesOwn(r.kind, item.Name):
			case !owns(d.lab, item):
				return nil, "it contains " + r.kind + " " + item.Name, nil
			case !slices.Contains(running, r.kind): // those are deleted one by one
				mine = append(mine, d.change(r.kind, item, nil))
			}
		}
	}
	return mine, "", nil
}

// served is one resource of the cluster.
type served struct {
	kind     string
	resource schema.GroupVersionResource
}

// passing are resources that Kubernetes itself creates in any namespace
// and that say nothing about its owner.
var passing = map[schema.GroupResource]bool{
	{Resource: "events"}:                                    true,
	{Group: "events.k8s.io", Resource: "events"}:            true,
	{Group: "coordination.k8s.io", Resource: "leases"}:      true,
	{Resource: "endpoints"}:                                 true,
	{Group: "discovery.k8s.io", Resource: "endpointslices"}: true,
	{Group: "metrics.k8s.io", Resource: "pods"}:             true,
}

// listable returns the resources that can be listed and are relevant, sorted.
func listable(groups []*metav1.APIResourceList) []served {
	var out []served
	for _, group := range groups {
		gv, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range group.APIResources {
			resource := gv.WithResource(r.Name)
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") && !passing[resource.GroupResource()] {
				out = append(out, served{r.Kind, resource})
			}
		}
	}
	slices.SortFunc(out, func(a, b served) int { return strings.Compare(a.resource.String(), b.resource.String()) })
	return out
}

// kubernetesOwn reports whether every namespace contains the object.
func kubernetesOwn(kind, name string) bool {
	return kind == "ConfigMap" && name == "kube-root-ca.crt" || kind == "ServiceAccount" && name == "default"
}
