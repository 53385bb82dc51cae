package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Change is one object that was applied, pruned or deleted.
type Change struct {
	// Action is "applied", "pruned", "deleted" or "kept". If Err is set, the action failed.
	Action string
	Object string // Deployment/r1
	Source string // the line of the topology, or its file
	Err    error
}

func (c Change) error() error {
	return fmt.Errorf("%s%s: %w", c.Object, status.At(c.Source), c.Err)
}

// ApplyOptions are Apply's.
type ApplyOptions struct {
	// DryRun asks the API server to check the objects and changes nothing.
	DryRun bool
	// Prune are the objects to delete after the apply: of Diff.Prune, those that the
	// user has agreed to.
	Prune []Prune
	// Tell is called for every object.
	Tell func(Change)
}

// Apply applies a lab by server-side apply and then prunes. What Pods mount and use
// comes before the Deployments; if any of it fails, the Deployments and the objects to
// prune are left alone, so that running Pods keep what they run with. The error joins
// all failures. Apply can be interrupted and run again at any time. The namespace
// exists (EnsureNamespace).
func (c *Client) Apply(ctx context.Context, l *Lab, o ApplyOptions) error {
	report := reporter{tell: o.Tell}
	first, last := split(l.objects)
	for _, objects := range [][]*unstructured.Unstructured{first, last} {
		bounded.Each(len(objects), requestsAtOnce, func(i int) {
			u := objects[i]
			_, err := c.applyObject(ctx, l.Namespace, u, o.DryRun)
			report.change("applied", objectKey(u), l.line(u), err)
		})
		if len(report.errs) > 0 && !o.DryRun {
			return report.err()
		}
	}
	if !o.DryRun {
		c.prune(ctx, l.Namespace, o.Prune, &report)
	}
	return report.err()
}

// split separates what Pods mount and use from the Deployments. The RoleBinding is with
// the latter: the API server looks at its Role.
func split(objects []*unstructured.Unstructured) (first, last []*unstructured.Unstructured) {
	for _, u := range objects {
		switch u.GetKind() {
		case "RoleBinding", "Deployment":
			last = append(last, u)
		default:
			first = append(first, u)
		}
	}
	return first, last
}

// applyObject applies one object and returns what the API server makes of it.
func (c *Client) applyObject(ctx context.Context, namespace string, u *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	if u.GetNamespace() != namespace {
		u = u.DeepCopy()
		u.SetNamespace(namespace)
	}
	o := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	if dryRun {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return c.Dynamic.Resource(rights.Resources[u.GetKind()]).Namespace(namespace).Apply(ctx, u.GetName(), u, o)
}

// prune deletes objects. One that was replaced since it was looked at stays.
func (c *Client) prune(ctx context.Context, namespace string, objects []Prune, report *reporter) {
	bounded.Each(len(objects), requestsAtOnce, func(i int) {
		p := objects[i]
		policy := metav1.DeletePropagationBackground
		if p.kind == "ConfigMap" && p.name == contract.ExpiryConfigMap {
			policy = metav1.DeletePropagationOrphan // the lab no longer expires; what it owns stays
		}
		err := c.Dynamic.Resource(rights.Resources[p.kind]).Namespace(namespace).Delete(ctx, p.name,
			metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &p.uid}})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			err = nil
		}
		report.change("pruned", p.Object, p.Source, err)
	})
}

// reporter passes changes on, one at a time, and keeps their errors.
type reporter struct {
	tell func(Change)
	mu   sync.Mutex
	errs []error
}

func (r *reporter) change(action, object, source string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change := Change{Action: action, Object: object, Source: source, Err: err}
	if err != nil {
		r.errs = append(r.errs, change.error())
	}
	if r.tell != nil {
		r.tell(change)
	}
}

func (r *reporter) err() error { return errors.Join(r.errs...) }

// DryRunElsewhere checks the objects of a lab whose namespace does not exist yet. The
// API server rejects objects there, so it checks them as if they were for the namespace
// default.
func (c *Client) DryRunElsewhere(ctx context.Context, l *Lab, tell func(Change)) error {
	if tell != nil {
		tell(Change{Action: "checked", Object: "namespace " + l.Namespace + " does not exist yet; its objects, as if in namespace " + metav1.NamespaceDefault + ", are"})
	}
	return c.Apply(ctx, &Lab{Name: l.Name, Namespace: metav1.NamespaceDefault, objects: l.objects}, ApplyOptions{DryRun: true, Tell: tell})
}
