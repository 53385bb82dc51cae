package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/apply"
	"sigs.k8s.io/cli-utils/pkg/apply/event"
	"sigs.k8s.io/cli-utils/pkg/common"
	"sigs.k8s.io/cli-utils/pkg/inventory"
	cliobject "sigs.k8s.io/cli-utils/pkg/object"
	"sigs.k8s.io/cli-utils/pkg/object/validation"

	"github.com/c9s-lab/c9s/pkg/contract"
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

// noWait ends cli-utils' own waiting at once: what it waits for is less than what
// WaitReady tells.
const noWait = time.Millisecond

// Apply applies a lab by server-side apply, and removes what an earlier deploy of
// it made and this one lacks. All that fails is in the error.
func (c *Client) Apply(ctx context.Context, l *Lab, o ApplyOptions) error {
	missing, err := c.applyNamespace(ctx, l, o.DryRun)
	if err != nil {
		return err
	}
	if o.DryRun && missing {
		return c.dryRunElsewhere(ctx, l, o.Tell)
	}
	book, err := (inventory.ClusterClientFactory{StatusPolicy: inventory.StatusPolicyNone}).NewClient(c.factory)
	if err != nil {
		return err
	}
	options := apply.ApplierOptions{
		ServerSideOptions: common.ServerSideOptions{ServerSideApply: true, ForceConflicts: true, FieldManager: FieldManager},
		ReconcileTimeout:  noWait,
		PruneTimeout:      noWait,
		InventoryPolicy:   inventory.PolicyAdoptIfNoInventory,
		ValidationPolicy:  validation.ExitEarly,
	}
	if o.DryRun {
		options.DryRunStrategy = common.DryRunServer
	}
	sources := map[string]string{}
	objects := make([]*unstructured.Unstructured, len(l.objects))
	for i, u := range l.objects {
		objects[i] = u.DeepCopy() // cli-utils annotates them
		sources[u.GetKind()+"/"+u.GetName()] = u.GetAnnotations()[contract.AnnotationSource]
	}
	told := teller{sources: sources, tell: o.Tell}
	return errors.Join(c.applyLab(ctx, inventoryInfo(l.Namespace, l.Name), book, objects, options, &told), told.err())
}

// applyLab records what there was and will be, so that nothing is lost track of where
// this is interrupted; applies and prunes; and records what there is.
func (c *Client) applyLab(ctx context.Context, info inventory.Info, book inventory.Client, objects []*unstructured.Unstructured, o apply.ApplierOptions, told *teller) error {
	old, err := book.GetClusterObjs(info)
	if err != nil {
		return err
	}
	wanted := cliobject.UnstructuredSetToObjMetadataSet(objects)
	if _, err := book.Merge(info, wanted, o.DryRunStrategy); err != nil {
		return fmt.Errorf("recording the lab's objects in ConfigMap %s: %w", InventoryName, err)
	}
	first, last := parts(objects)
	after, err := c.applyParts(ctx, info, book, first, old, nil, o, told.note)
	if err != nil {
		return err
	}
	if len(told.errs) > 0 && !o.DryRunStrategy.ClientOrServerDryRun() {
		return nil // told: Pods that run keep what they run with
	}
	more, err := c.applyParts(ctx, info, book, last, old, old.Diff(wanted), o, told.note)
	if err != nil {
		return err
	}
	if err := book.Replace(info, after.Union(more), nil, o.DryRunStrategy); err != nil {
		return fmt.Errorf("recording the lab's objects in ConfigMap %s: %w", InventoryName, err)
	}
	return nil
}

// teller reads the events of appliers.
type teller struct {
	sources map[string]string
	tell    func(Change)
	errs    []error
}

func (t *teller) err() error { return errors.Join(t.errs...) }

func (t *teller) note(e event.Event) {
	switch e.Type {
	case event.ErrorType:
		t.errs = append(t.errs, e.ErrorEvent.Err)
	case event.ValidationType:
		t.errs = append(t.errs, e.ValidationEvent.Error)
	case event.ApplyType:
		if a := e.ApplyEvent; a.Status != event.ApplyPending {
			t.change("applied", a.Identifier, a.Error)
		}
	case event.PruneType:
		if p := e.PruneEvent; p.Status != event.PrunePending {
			t.change("pruned", p.Identifier, p.Error)
		}
	}
}

func (t *teller) change(action string, id cliobject.ObjMetadata, err error) {
	name := id.GroupKind.Kind + "/" + id.Name
	change := Change{Action: action, Object: name, Source: t.sources[name], Err: err}
	if err != nil {
		t.errs = append(t.errs, change.error())
	}
	if t.tell != nil {
		t.tell(change)
	}
}

func (c Change) error() error {
	return fmt.Errorf("%s%s: %w", c.Object, status.At(c.Source), c.Err)
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// applyNamespace makes the namespace, or sets c9s' labels on it. It does not take
// a label over from somebody else: a namespace whose Pod Security level an
// administrator has set stays as it is. One that was there before the lab is not
// marked as the lab's, so that destroy leaves it. It tells whether it was missing.
func (c *Client) applyNamespace(ctx context.Context, l *Lab, dryRun bool) (missing bool, err error) {
	if l.namespace == nil {
		return false, nil
	}
	wanted := l.namespace
	switch ns, err := c.Typed.CoreV1().Namespaces().Get(ctx, l.Namespace, metav1.GetOptions{}); {
	case err == nil && !owns(l, ns):
		wanted = unmarked(wanted)
	case apierrors.IsNotFound(err):
		missing = true
	case err != nil && !apierrors.IsForbidden(err):
		return false, fmt.Errorf("namespace %s: %w", l.Namespace, err)
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err = c.Dynamic.Resource(namespaces).Apply(ctx, l.Namespace, wanted, options)
	switch {
	case err == nil:
		return missing, nil
	case apierrors.IsConflict(err):
		return missing, fmt.Errorf("namespace %s belongs to somebody else, who set what c9s needs otherwise: %w; choose another with -n, or ask for the label pod-security.kubernetes.io/enforce=privileged", l.Namespace, err)
	case apierrors.IsForbidden(err):
		// It may be there for the user to use.
		if _, getErr := c.Typed.CoreV1().ConfigMaps(l.Namespace).List(ctx, metav1.ListOptions{Limit: 1}); getErr == nil {
			return missing, nil
		}
	}
	return missing, fmt.Errorf("namespace %s: %w", l.Namespace, err)
}

// unmarked is the lab's namespace with nothing but what its Pods need of it.
func unmarked(ns *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(ns.GroupVersionKind())
	out.SetName(ns.GetName())
	labels := map[string]string{}
	for name, value := range ns.GetLabels() {
		if strings.HasPrefix(name, "pod-security.kubernetes.io/") {
			labels[name] = value
		}
	}
	out.SetLabels(labels)
	return out
}

// dryRunElsewhere checks the objects of a lab whose namespace is still to be made. The
// API server refuses them there, so it is asked as if they were for the namespace
// default.
func (c *Client) dryRunElsewhere(ctx context.Context, l *Lab, tell func(Change)) error {
	if tell != nil {
		tell(Change{Action: "checked", Object: "namespace " + l.Namespace + " does not exist yet; its objects, as if in namespace " + metav1.NamespaceDefault + ", are"})
	}
	var errs []error
	for _, u := range l.objects {
		_, err := c.dryRun(ctx, &Lab{Name: l.Name, Namespace: metav1.NamespaceDefault}, u)
		change := Change{Action: "applied", Object: objectKey(u), Source: u.GetAnnotations()[contract.AnnotationSource], Err: err}
		if err != nil {
			errs = append(errs, change.error())
		}
		if tell != nil {
			tell(change)
		}
	}
	return errors.Join(errs...)
}
