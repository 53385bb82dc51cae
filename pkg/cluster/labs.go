package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
)

// Found is a lab in a cluster.
type Found struct {
	Name, Namespace string
	Created         time.Time
	// Owner is the user who deployed it, "" if that is not known. Expires is the zero value
	// for a lab that does not expire.
	Owner   string
	Expires time.Time
	// Deployed reports whether c9s deploy made it; otherwise it was applied as
	// rendered.
	Deployed bool
	// DataOnly reports whether nothing is left of it but what destroy --keep-data keeps.
	DataOnly bool
}

// Labs finds the labs of a namespace, or of all for "". Where the user may not
// look everywhere, it is those of the context's namespace.
func (c *Client) Labs(ctx context.Context, namespace string) ([]Found, error) {
	client, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(rights.Resources["ConfigMap"]).Namespace(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/managed-by=c9s," + contract.LabelComponent + "=" + contract.ComponentLab,
	})
	if apierrors.IsForbidden(err) && namespace == "" {
		return c.Labs(ctx, c.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for labs: %w", err)
	}
	return labsOf(list.Items), nil
}

// labsOf finds labs by their ConfigMaps: every lab has a directory, and what
// destroy --keep-data leaves has allocations.
func labsOf(list []metav1.PartialObjectMetadata) []Found {
	found := map[[2]string]Found{}
	expires := map[[2]string]time.Time{}
	for i := range list {
		cm := &list[i]
		if cm.Name == contract.ExpiryConfigMap {
			expires[[2]string{cm.Annotations[contract.AnnotationLabName], cm.Namespace}] = contract.ParseExpiry(cm.Annotations[contract.AnnotationExpires])
		}
		directory := cm.Name == contract.DirectoryConfigMap
		if !directory && cm.Name != contract.AllocationsName(0) {
			continue
		}
		key := [2]string{cm.Annotations[contract.AnnotationLabName], cm.Namespace}
		if _, ok := found[key]; ok && !directory {
			continue
		}
		found[key] = Found{
			Name: key[0], Namespace: cm.Namespace, Created: cm.CreationTimestamp.Time,
			Deployed: applied(cm), DataOnly: !directory, Owner: cm.Annotations[contract.AnnotationOwner],
		}
	}
	for key, l := range found {
		l.Expires = expires[key]
		found[key] = l
	}
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, func(a, b Found) int {
		return strings.Compare(a.Name+"\x00"+a.Namespace, b.Name+"\x00"+b.Namespace)
	})
	return out
}

// EmptyNamespaces returns the namespaces that c9s created and that have none of the labs.
func (c *Client) EmptyNamespaces(ctx context.Context, labs []Found, namespace string) ([]string, error) {
	list, err := c.Typed.CoreV1().Namespaces().List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/managed-by=c9s," + contract.LabelComponent + "=" + contract.ComponentLab,
	})
	if err != nil {
		return nil, fmt.Errorf("looking for namespaces: %w", err)
	}
	var out []string
	for _, ns := range list.Items {
		used := slices.ContainsFunc(labs, func(l Found) bool { return l.Namespace == ns.Name })
		if !used && ns.DeletionTimestamp == nil && (namespace == "" || namespace == ns.Name) {
			out = append(out, ns.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// Choose picks a lab by its name, or the only one for "". Where no lab has the name,
// one whose namespace has it is meant, unless it is the name that a topology says.
func Choose(labs []Found, name, namespace string, ofTopology bool) (Found, error) {
	var fit, inside []Found
	names := describe(labs)
	for _, l := range labs {
		if name == "" || l.Name == name {
			fit = append(fit, l)
		}
		if l.Namespace == name {
			inside = append(inside, l)
		}
	}
	if len(fit) == 0 && !ofTopology {
		fit = inside
	}
	where := "in the cluster"
	if namespace != "" {
		where = "in namespace " + namespace
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1 && name != "":
		return Found{}, fmt.Errorf("there are several labs called %s; choose one with -n: %s", name, strings.Join(describe(fit), ", "))
	case len(fit) > 1:
		return Found{}, fmt.Errorf("there are several labs; name one, with -n if needed: %s", strings.Join(names, ", "))
	case name == "" && len(labs) == 0:
		return Found{}, noLab("there is no lab " + where)
	case len(labs) == 0:
		return Found{}, noLab(fmt.Sprintf("lab %q is not %s", name, where))
	default:
		return Found{}, noLab("lab " + name + " is not " + where + "; there are: " + strings.Join(names, ", "))
	}
}

// ErrNoLab is the error of Choose for a lab that is not there.
var ErrNoLab = errors.New("there is no such lab")

type noLab string

func (e noLab) Error() string        { return string(e) }
func (e noLab) Is(target error) bool { return target == ErrNoLab }

// describe names labs with their namespaces.
func describe(labs []Found) []string {
	var out []string
	for _, l := range labs {
		out = append(out, l.Name+" in namespace "+l.Namespace)
	}
	return out
}
