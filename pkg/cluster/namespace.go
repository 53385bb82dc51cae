package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podSecurity is the label of a namespace with the level that it enforces (Pod
// Security admission); privileged is the level that the sidecar needs.
const (
	podSecurity = "pod-security.kubernetes.io/enforce"
	privileged  = "privileged"
)

// annotationLevelFor marks a namespace of somebody else whose Pod Security level c9s
// has set: its value is the lab for which it did. Destroy takes the level back.
const annotationLevelFor = "c9s.dev/pod-security-for"

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// SetsLevel reports whether a deploy sets the Pod Security level of a namespace that the
// lab did not create: one that has none of its own yet. Without it the cluster's default
// holds, which may be stricter.
func (e Existing) SetsLevel(l *Lab) bool {
	return l.namespace != nil && e.Namespace != nil && !owns(l, e.Namespace) && e.Namespace.Labels[podSecurity] == ""
}

// EnsureNamespace creates the lab's namespace, or sets what the lab needs of one that
// exists: all of c9s' labels on one that the lab created, the Pod Security level on one
// of somebody else (SetsLevel). It takes no label over from another field manager, and
// leaves a namespace alone that the user cannot see.
func (c *Client) EnsureNamespace(ctx context.Context, l *Lab, existing Existing) error {
	wanted := l.namespace
	switch {
	case wanted == nil, !existing.Fresh && existing.Namespace == nil:
		return nil
	case existing.SetsLevel(l):
		wanted = level(l.Namespace, l.Name)
	case existing.Namespace != nil && !owns(l, existing.Namespace):
		return nil
	}
	_, err := c.Dynamic.Resource(namespaces).Apply(ctx, l.Namespace, wanted, metav1.ApplyOptions{FieldManager: FieldManager})
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && !existing.Fresh:
		return nil // the namespace is for the user to use as it is
	case apierrors.IsConflict(err):
		return fmt.Errorf("namespace %s: another field manager sets a conflicting value: %w; use another namespace with -n, or have the label set to %s=%s", l.Namespace, err, podSecurity, privileged)
	}
	return fmt.Errorf("namespace %s: %w", l.Namespace, err)
}

// level is what c9s applies to a namespace of somebody else for a lab; for "" it is
// nothing, which takes back what was applied before.
func level(namespace, lab string) *unstructured.Unstructured {
	ns := &unstructured.Unstructured{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	ns.SetName(namespace)
	if lab != "" {
		ns.SetLabels(map[string]string{podSecurity: privileged})
		ns.SetAnnotations(map[string]string{annotationLevelFor: lab})
	}
	return ns
}

// restoreLevel takes back the Pod Security level that a deploy set on a namespace which
// the lab did not create. It reports whether there was one to take back. Labels that
// somebody else set stay: the API server knows the field manager of each.
func (c *Client) restoreLevel(ctx context.Context, l *Lab) (bool, error) {
	ns, err := c.Typed.CoreV1().Namespaces().Get(ctx, l.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, err
	case owns(l, ns) || !applied(ns) || ns.DeletionTimestamp != nil:
		return false, nil
	}
	if lab := ns.Annotations[annotationLevelFor]; lab != "" && lab != l.Name {
		return false, nil
	}
	_, err = c.Dynamic.Resource(namespaces).Apply(ctx, l.Namespace, level(l.Namespace, ""), metav1.ApplyOptions{FieldManager: FieldManager})
	return err == nil, err
}
