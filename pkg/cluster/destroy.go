package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	// Waiting is called where another client may be changing the lab (Claim).
	Waiting func(holder string)
}

// killAfter is how long a device has to end by itself where nobody asked for more, in
// seconds. With none at all the API server forgets a Pod before its worker has
// ended it.
const killAfter = 1

// kept with the data: what the next deploy reads back.
func kept(kind, name string) bool {
	return kind == "PersistentVolumeClaim" || kind == "Secret" ||
		kind == "ConfigMap" && strings.HasPrefix(name, contract.AllocationsName(0))
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
	// patience is how long nothing may happen.
	patience time.Duration
	DestroyOptions
}

// Destroy removes a lab's objects, however they were applied, and its namespace
// where the lab made it and nobody else has anything in it.
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

// run destroys in the context of the claim, which is released once the namespace is on
// its way out: the Lease goes with it.
func (d *destruction) run(ctx, claimed context.Context, release func()) error {
	if err := d.remove(claimed, running); err != nil {
		return err
	}
	if _, err := d.client.DropInventory(claimed, d.lab); err != nil {
		return err
	}
	// Kubernetes lets a namespace be for five seconds before it looks at what is in it:
	// those are the Pods' to end in.
	whole := false
	if !d.KeepData {
		var err error
		if whole, err = d.removeNamespace(claimed); err != nil {
			return err
		}
	}
	if whole {
		release()
	} else {
		ctx = claimed
	}
	var stuck error
	if d.Wait {
		if stuck = d.podsGone(ctx); ctx.Err() != nil {
			return stuck
		}
	}
	switch {
	case !whole:
		return errors.Join(stuck, d.remove(ctx, belongings), d.restoreLevel(ctx))
	case d.Wait && stuck == nil:
		return d.namespaceGone(ctx)
	}
	return stuck
}

// restoreLevel takes back the Pod Security level that a deploy set on the namespace.
func (d *destruction) restoreLevel(ctx context.Context) error {
	switch restored, err := d.client.restoreLevel(ctx, d.lab); {
	case apierrors.IsForbidden(err):
		d.tell(Change{Action: "kept", Object: fmt.Sprintf("label %s of namespace %s, which a deploy set (you may not patch the namespace)", podSecurity, d.lab.Namespace)})
	case err != nil:
		return fmt.Errorf("taking back the Pod Security level of namespace %s: %w", d.lab.Namespace, err)
	case restored:
		d.tell(Change{Action: "removed", Object: fmt.Sprintf("label %s=%s from namespace %s, which a deploy set", podSecurity, privileged, d.lab.Namespace)})
	}
	return nil
}

// find lists the lab's objects of a kind that are to go, and those of them that are not
// going yet.
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
		switch {
		case !apierrors.IsForbidden(err):
		case derived(kind):
			continue
		case optional(kind):
			d.tell(Change{Action: "kept", Object: removed[kind].Resource + ", if there are any: you may not see them (the controller's; --no-controller does without)"})
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// derived tells that Kubernetes makes objects of a kind for others, and removes them
// after those, so that who may not do it only waits longer.
func derived(kind string) bool { return kind == "ReplicaSet" || kind == "Pod" }

// optional tells that a lab may do without a kind, which users of one namespace may
// often not see: those of the controller's rights.
func optional(kind string) bool { return kind == "Role" || kind == "RoleBinding" }

// removeAll deletes objects of one kind. What is gone already is no error.
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
		d.Tell(c)
	}
}

// patience is how long a Pod may take to end after its grace, or after the last other
// one: that of a worker which does not answer never ends by itself.
const patience = 45 * time.Second

// podsGone waits until no Pod of the lab is left, or those that are left will not end.
// One that a controller made before it heard of the lab's end is removed too.
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
			return fmt.Errorf("waiting for the end of %d Pods: %w", len(there), ctx.Err())
		}
	}
}

// grace is the longest that one of some Pods has to end by itself.
func grace(pods []*metav1.PartialObjectMetadata) time.Duration {
	var longest int64
	for _, p := range pods {
		if s := p.DeletionGracePeriodSeconds; s != nil {
			longest = max(longest, *s)
		}
	}
	return time.Duration(longest) * time.Second
}

// lost names the Pods that do not end, and where they are.
func (d *destruction) lost(ctx context.Context) error {
	list, err := d.client.Typed.CoreV1().Pods(d.lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelLab + "=" + contract.LabelValue(d.lab.Name)})
	if err != nil {
		return fmt.Errorf("some Pods do not end, and cannot be named: %w", err)
	}
	var names []string
	for i := range list.Items {
		p := &list.Items[i]
		names = append(names, fmt.Sprintf("%s on worker %s", p.Name, p.Spec.NodeName))
	}
	return fmt.Errorf("some Pods do not end, as on a worker that does not answer: %s; they go when it is back or removed (kubectl delete node), or at once with kubectl delete pod -n %s --force", strings.Join(names, ", "), d.lab.Namespace)
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
	if !owns(d.lab, ns) {
		return false, nil
	}
	if ns.DeletionTimestamp != nil { // by a destroy that was interrupted
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
// namespace is not the lab's alone: it looks at whatever the cluster serves.
func (d *destruction) inNamespace(ctx context.Context) (mine []Change, busy string, err error) {
	served, err := discovery.ServerPreferredNamespacedResources(d.client.Typed.Discovery())
	if err != nil {
		return nil, fmt.Sprintf("not all that it may hold can be seen: %v", err), nil
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
			return nil, "you may not see whether it holds a " + r.kind, nil
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
				return nil, "it holds " + r.kind + " " + item.Name, nil
			case !derived(r.kind):
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

// passing are resources of which Kubernetes itself makes objects in any namespace,
// and which say nothing of whose it is.
var passing = map[schema.GroupResource]bool{
	{Resource: "events"}:                                    true,
	{Group: "events.k8s.io", Resource: "events"}:            true,
	{Group: "coordination.k8s.io", Resource: "leases"}:      true,
	{Resource: "endpoints"}:                                 true,
	{Group: "discovery.k8s.io", Resource: "endpointslices"}: true,
	{Group: "metrics.k8s.io", Resource: "pods"}:             true,
}

// listable are the resources that can be listed and say something, sorted.
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

// kubernetesOwn tells what is in every namespace.
func kubernetesOwn(kind, name string) bool {
	return kind == "ConfigMap" && name == "kube-root-ca.crt" || kind == "ServiceAccount" && name == "default"
}
