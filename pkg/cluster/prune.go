package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
)

// Deploy deletes an object only if all of this holds: it is in the lab's namespace; it
// is of a kind that render makes; it carries the lab's labels and annotation; the API
// server's record of field managers says that c9s applied it; and this lab no longer
// has it. What somebody else applied for the same lab, as kubectl or a GitOps tool
// does, is reported and kept. No list of names in the cluster is an authority.

// Prune is an object of an earlier deploy that the lab no longer has.
type Prune struct {
	Object string `json:"object"` // Deployment/r1
	Source string `json:"source,omitempty"`
	// Data reports that it holds the data of a node.
	Data bool `json:"data,omitempty"`

	kind, name string
	uid        types.UID
}

// Foreign is an object with the lab's labels that the lab does not have and that c9s
// did not apply.
type Foreign struct {
	Object string `json:"object"`
	// Managers are the field managers that applied or created it.
	Managers []string `json:"managers"`
}

// owns reports whether a live object carries a lab's marks.
func owns(l *Lab, live metav1.Object) bool {
	marks := live.GetLabels()
	return live.GetAnnotations()[contract.AnnotationLabName] == l.Name && marks["app.kubernetes.io/managed-by"] == "c9s" &&
		marks[contract.LabelLab] == contract.LabelValue(l.Name)
}

// labSelector selects the objects that may carry a lab's marks.
func labSelector(lab string) string {
	return labels.Set{"app.kubernetes.io/managed-by": "c9s", contract.LabelLab: contract.LabelValue(lab)}.String()
}

// labelOf selects all objects of a lab, with those that Kubernetes creates for them.
func labelOf(lab string) string { return contract.LabelLab + "=" + contract.LabelValue(lab) }

// applied reports whether c9s deploy applied a live object.
func applied(live metav1.Object) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == FieldManager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == ""
	})
}

// managers are the field managers of a live object itself, sorted.
func managers(live metav1.Object) []string {
	var out []string
	for _, f := range live.GetManagedFields() {
		if f.Subresource == "" {
			out = append(out, f.Manager)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// live are the objects in the cluster that carry the lab's marks, by Kind/name.
func (c *Client) live(ctx context.Context, l *Lab) (map[string]*unstructured.Unstructured, error) {
	kinds := slices.Sorted(maps.Keys(rights.Resources))
	lists, errs := make([]*unstructured.UnstructuredList, len(kinds)), make([]error, len(kinds))
	wanted := l.kinds()
	bounded.Each(len(kinds), requestsAtOnce, func(i int) {
		gvr := rights.Resources[kinds[i]]
		list, err := c.Dynamic.Resource(gvr).Namespace(l.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labSelector(l.Name)})
		switch {
		case apierrors.IsForbidden(err) && !slices.Contains(wanted, kinds[i]):
		case err != nil:
			errs[i] = fmt.Errorf("reading %s of namespace %s: %w", gvr.Resource, l.Namespace, err)
		default:
			lists[i] = list
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := map[string]*unstructured.Unstructured{}
	for i, list := range lists {
		if list == nil {
			continue
		}
		for j := range list.Items {
			u := &list.Items[j]
			u.SetKind(kinds[i])
			u.SetAPIVersion(rights.Resources[kinds[i]].GroupVersion().String())
			if owns(l, u) && !(kinds[i] == "ConfigMap" && u.GetName() == InventoryName) {
				out[objectKey(u)] = u
			}
		}
	}
	return out, nil
}

// leftover divides the live objects that the lab does not have into those that a deploy
// prunes and those that it keeps, both sorted.
func leftover(l *Lab, live map[string]*unstructured.Unstructured) (prune []Prune, foreign []Foreign) {
	wanted := map[string]bool{}
	for _, u := range l.objects {
		wanted[objectKey(u)] = true
	}
	for _, key := range slices.Sorted(maps.Keys(live)) {
		u := live[key]
		switch {
		case wanted[key] || u.GetDeletionTimestamp() != nil:
		case applied(u):
			prune = append(prune, Prune{
				Object: key, Source: u.GetAnnotations()[contract.AnnotationSource], Data: u.GetKind() == "PersistentVolumeClaim",
				kind: u.GetKind(), name: u.GetName(), uid: u.GetUID(),
			})
		default:
			foreign = append(foreign, Foreign{Object: key, Managers: managers(u)})
		}
	}
	return prune, foreign
}

// InventoryName is the ConfigMap in which earlier versions of c9s recorded a lab's
// objects. Whoever may write ConfigMaps may have written it: nothing is deleted because
// it is named there.
const InventoryName = "c9s-inventory"

// DropInventory deletes the inventory that an earlier version of c9s left, and returns
// its entries that are no objects of the lab: nobody but an attacker or a mistake can
// have put them there.
func (c *Client) DropInventory(ctx context.Context, l *Lab) (suspicious []string, err error) {
	maps_ := c.Typed.CoreV1().ConfigMaps(l.Namespace)
	cm, err := maps_.Get(ctx, InventoryName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", InventoryName, err)
	}
	if cm.Annotations[contract.AnnotationLabName] != l.Name || cm.Labels["app.kubernetes.io/managed-by"] != "c9s" {
		return nil, nil
	}
	for _, entry := range slices.Sorted(maps.Keys(cm.Data)) {
		if text := suspect(entry, l.Namespace); text != "" {
			suspicious = append(suspicious, text)
		}
	}
	err = maps_.Delete(ctx, InventoryName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &cm.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return suspicious, err
}

// suspect names an entry of an inventory (NAMESPACE_NAME_GROUP_KIND) that is of another
// namespace, or of a kind that c9s does not make; "" for one that can be a lab's.
func suspect(entry, namespace string) string {
	part := strings.Split(entry, "_")
	if len(part) != 4 {
		return fmt.Sprintf("%q", entry)
	}
	gvr, ok := rights.Resources[part[3]]
	if ok && gvr.Group == part[2] && part[0] == namespace {
		return ""
	}
	text := part[3] + "/" + strings.ReplaceAll(part[1], "__", ":")
	if part[0] != "" {
		text += " of namespace " + part[0]
	}
	return text
}
