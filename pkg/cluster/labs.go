package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/links"
	"github.com/c9s-lab/c9s/pkg/render/own"
)

// Found is a lab in a cluster.
type Found struct {
	Name, Namespace string
	Created         time.Time
	// Deployed tells that c9s deploy made it; otherwise it was applied as
	// rendered.
	Deployed bool
}

// Labs finds the labs of a namespace, or of all for "". Where the user may not
// look everywhere, it is those of the context's namespace.
func (c *Client) Labs(ctx context.Context, namespace string) ([]Found, error) {
	// Every lab has one directory.
	list, err := c.Typed.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/managed-by=c9s," + own.LabelComponent + "=" + own.ComponentLab,
		FieldSelector: "metadata.name=" + links.DirectoryName(0),
	})
	if apierrors.IsForbidden(err) && namespace == "" {
		return c.Labs(ctx, c.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for labs: %w", err)
	}
	var out []Found
	for i := range list.Items {
		cm := &list.Items[i]
		out = append(out, Found{
			Name: cm.Annotations[own.AnnotationLabName], Namespace: cm.Namespace,
			Created: cm.CreationTimestamp.Time, Deployed: cm.Annotations[owningInventory] != "",
		})
	}
	slices.SortFunc(out, func(a, b Found) int {
		return strings.Compare(a.Name+"\x00"+a.Namespace, b.Name+"\x00"+b.Namespace)
	})
	return out, nil
}

// Choose picks a lab by its name, or the only one for "".
func Choose(labs []Found, name, namespace string) (Found, error) {
	var fit []Found
	var names []string
	for _, l := range labs {
		if name == "" || l.Name == name || l.Namespace == name {
			fit = append(fit, l)
		}
		names = append(names, l.Name+" in namespace "+l.Namespace)
	}
	where := "in the cluster"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return Found{}, fmt.Errorf("there are several labs, choose one (and -n): %s", strings.Join(names, ", "))
	case name == "" && len(labs) == 0:
		return Found{}, fmt.Errorf("there is no lab %s", where)
	case len(labs) == 0:
		return Found{}, fmt.Errorf("lab %q is not %s", name, where)
	default:
		return Found{}, errors.New("lab " + name + " is not " + where + "; there are: " + strings.Join(names, ", "))
	}
}
