package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/apply/filter"
	"sigs.k8s.io/cli-utils/pkg/common"
	"sigs.k8s.io/cli-utils/pkg/inventory"
	cliobject "sigs.k8s.io/cli-utils/pkg/object"

	"github.com/c9s-lab/c9s/pkg/render/own"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Change is one object that was applied or pruned.
type Change struct {
	// Action is "applied", "pruned" or "deleted"; Err tells that it was not.
	Action string
	Object string // Deployment/r1
	Source string // c9s.dev/source
	Err    error
}

// ApplyOptions are Apply's.
type ApplyOptions struct {
	// DryRun asks the API server what it would say, and changes nothing.
	DryRun bool
	// Tell is called for every object.
	Tell func(Change)
}

// appliesAtOnce bounds the requests that are under way: one after the other, most of
// the time of a large lab's deploy would be waiting for the API server's answers.
const appliesAtOnce = 16

// Apply applies a lab by server-side apply, and removes what an earlier deploy of
// it made and this one lacks. All that fails is in the error.
func (c *Client) Apply(ctx context.Context, l *Lab, o ApplyOptions) error {
	if err := c.applyNamespace(ctx, l, o.DryRun); err != nil {
		return err
	}
	book, err := (inventory.ClusterClientFactory{StatusPolicy: inventory.StatusPolicyNone}).NewClient(c.factory)
	if err != nil {
		return err
	}
	strategy := common.DryRunNone
	if o.DryRun {
		strategy = common.DryRunServer
	}
	// What is there and what will be is recorded first, so that nothing is lost
	// track of where this is interrupted.
	info, wanted := inventoryInfo(l.Namespace, l.Name), cliobject.UnstructuredSetToObjMetadataSet(l.objects)
	old, err := book.Merge(info, wanted, strategy)
	if err != nil {
		return fmt.Errorf("recording the lab's objects in ConfigMap %s: %w", InventoryName, err)
	}
	var errs []error
	for _, wave := range waves(l.objects) {
		errs = append(errs, c.applyAll(ctx, l, wave, o))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	left, err := c.prune(ctx, l, old, o)
	errs = append(errs, err)
	if err := book.Replace(info, wanted.Union(left), nil, strategy); err != nil {
		errs = append(errs, fmt.Errorf("recording the lab's objects in ConfigMap %s: %w", InventoryName, err))
	}
	return errors.Join(errs...)
}

// waves are the Deployments, and before them what their Pods mount and use.
func waves(objects []*unstructured.Unstructured) [2][]*unstructured.Unstructured {
	var out [2][]*unstructured.Unstructured
	for _, u := range objects {
		if u.GetKind() == "Deployment" {
			out[1] = append(out[1], u)
		} else {
			out[0] = append(out[0], u)
		}
	}
	return out
}

// applyAll applies objects in no order, and tells of each.
func (c *Client) applyAll(ctx context.Context, l *Lab, objects []*unstructured.Unstructured, o ApplyOptions) error {
	var (
		wg    sync.WaitGroup
		slots = make(chan struct{}, appliesAtOnce)
		mu    sync.Mutex
		errs  []error
	)
	for _, u := range objects {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			err := c.applyOne(ctx, l, u, o.DryRun)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, o.note(Change{Action: "applied", Object: objectKey(u), Source: u.GetAnnotations()[own.AnnotationSource], Err: err}))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// applyOne applies one object, unless it is another inventory's.
func (c *Client) applyOne(ctx context.Context, l *Lab, u *unstructured.Unstructured, dryRun bool) error {
	live, err := c.Dynamic.Resource(resources[u.GetKind()]).Namespace(l.Namespace).Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil {
		if _, err := inventory.CanApply(inventoryInfo(l.Namespace, l.Name), live, inventory.PolicyAdoptIfNoInventory); err != nil {
			return err
		}
	}
	_, err = c.serverApply(ctx, l, u, dryRun)
	return err
}

// prune removes what the lab had and has no more. What could not be removed is
// left, and stays recorded.
func (c *Client) prune(ctx context.Context, l *Lab, old cliobject.ObjMetadataSet, o ApplyOptions) (left cliobject.ObjMetadataSet, err error) {
	slices.SortFunc(old, func(a, b cliobject.ObjMetadata) int {
		return cmp.Or(slices.Index(deleteOrder, a.GroupKind.Kind)-slices.Index(deleteOrder, b.GroupKind.Kind), strings.Compare(a.Name, b.Name))
	})
	var errs []error
	for _, id := range old {
		pruned, err := c.pruneOne(ctx, l, id, o.DryRun)
		if err != nil {
			left = append(left, id)
		}
		if pruned || err != nil {
			errs = append(errs, o.note(Change{Action: "pruned", Object: id.GroupKind.Kind + "/" + id.Name, Err: err}))
		}
	}
	return left, errors.Join(errs...)
}

// pruneOne removes an object, unless it is gone already, is not the lab's any more,
// or has an annotation that it be kept.
func (c *Client) pruneOne(ctx context.Context, l *Lab, id cliobject.ObjMetadata, dryRun bool) (bool, error) {
	gvr, ok := resources[id.GroupKind.Kind]
	if !ok {
		return false, fmt.Errorf("this c9s knows nothing of %s: remove it by hand", id.GroupKind)
	}
	resource := c.Dynamic.Resource(gvr).Namespace(id.Namespace)
	live, err := resource.Get(ctx, id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ours, _ := inventory.CanPrune(inventoryInfo(l.Namespace, l.Name), live, inventory.PolicyAdoptIfNoInventory)
	if !ours || (filter.PreventRemoveFilter{}).Filter(live) != nil {
		return false, nil
	}
	uid, background := live.GetUID(), metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	err = resource.Delete(ctx, id.Name, options)
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return err == nil, err
}

// note tells of a change, and returns what went wrong with it.
func (o ApplyOptions) note(change Change) error {
	if o.Tell != nil {
		o.Tell(change)
	}
	if change.Err != nil {
		return change.error()
	}
	return nil
}

func (c Change) error() error {
	return fmt.Errorf("%s%s: %w", c.Object, status.At(c.Source), c.Err)
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// applyNamespace makes the namespace, or sets c9s' labels on it. It does not take
// a label over from somebody else: a namespace whose Pod Security level an
// administrator has set stays as it is.
func (c *Client) applyNamespace(ctx context.Context, l *Lab, dryRun bool) error {
	if l.namespace == nil {
		return nil
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err := c.Dynamic.Resource(namespaces).Apply(ctx, l.Namespace, l.namespace, options)
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("namespace %s belongs to somebody else, who set what c9s needs otherwise: %w; choose another with -n, or ask for the label pod-security.kubernetes.io/enforce=privileged", l.Namespace, err)
	case apierrors.IsForbidden(err):
		// It may be there for the user to use.
		if _, getErr := c.Typed.CoreV1().ServiceAccounts(l.Namespace).List(ctx, metav1.ListOptions{Limit: 1}); getErr == nil {
			return nil
		}
	}
	return fmt.Errorf("namespace %s: %w", l.Namespace, err)
}
