package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/c9s-lab/c9s/internal/bounded"
)

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

// collectRunning deletes what runs in a namespace that is being deleted, where nothing is
// recreated and the order does not matter. What creates and follows Pods goes together with
// them: otherwise Kubernetes reports the end of each Pod in its ReplicaSet, its Deployment and
// the endpoints of the Service. The API server deletes a collection one by one, so Pods, whose
// end takes the longest, are deleted by themselves.
func (d *destruction) collectRunning(ctx context.Context) error {
	going, _, err := d.find(ctx, "Deployment")
	if err != nil {
		return err
	}
	kinds := []string{"Service", "Pod", "Deployment", "ReplicaSet"}
	errs := make([]error, len(kinds))
	bounded.Each(len(kinds), len(kinds), func(i int) {
		kind := kinds[i]
		if kind != "Pod" {
			errs[i] = d.collect(ctx, kind, labelOf(d.lab.Name))
		}
		switch {
		case kind == "Pod" || apierrors.IsForbidden(errs[i]): // to delete a collection is a right of its own
			errs[i] = d.remove(ctx, kinds[i:i+1])
		case kind == "Deployment" && errs[i] == nil:
			for _, live := range going {
				d.tell(d.change(kind, live, nil))
			}
		}
	})
	return errors.Join(errs...)
}

// collect deletes all objects of a kind that a selector selects, with one request.
func (d *destruction) collect(ctx context.Context, kind, selector string) error {
	background := metav1.DeletePropagationBackground
	objects := d.meta.Resource(removed[kind]).Namespace(d.lab.Namespace)
	return objects.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{LabelSelector: selector})
}

// clear deletes what is left of the lab in a namespace that is being deleted, so that nobody
// finds the lab there any more. Errors do not matter: Kubernetes deletes all of it.
func (d *destruction) clear(ctx context.Context) {
	bounded.Each(len(belongings), len(belongings), func(i int) { _ = d.collect(ctx, belongings[i], labSelector(d.lab.Name)) })
}

// toldBefore reports whether the step that deletes the namespace has reported the objects of
// a kind, which Kubernetes deletes with it.
func (d *destruction) toldBefore(kind string) bool { return d.whole && !slices.Contains(running, kind) }

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
			case !d.owns(r.kind, item):
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
