package cluster

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/internal/bounded"
)

// annotationPaused marks a Deployment that Pause has stopped.
const annotationPaused = "c9s.dev/paused"

// Pause stops all Deployments of a lab's nodes that are not stopped, or starts again those
// that it has stopped. It returns their names.
func (c *Client) Pause(ctx context.Context, lab Found, resume bool) ([]string, error) {
	list, err := c.Typed.AppsV1().Deployments(lab.Namespace).List(ctx, metav1.ListOptions{LabelSelector: nodeSelector(lab.Name)})
	if err != nil {
		return nil, fmt.Errorf("reading lab %s: %w", lab.Name, err)
	}
	chosen := slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool {
		stopped := d.Spec.Replicas != nil && *d.Spec.Replicas == 0
		if resume {
			return d.Annotations[annotationPaused] == ""
		}
		return stopped
	})
	patch := `{"metadata":{"annotations":{"` + annotationPaused + `":"true"}},"spec":{"replicas":0}}`
	if resume {
		patch = `{"metadata":{"annotations":{"` + annotationPaused + `":null}},"spec":{"replicas":1}}`
	}
	names, errs := make([]string, len(chosen)), make([]error, len(chosen))
	bounded.Each(len(chosen), requestsAtOnce, func(i int) {
		names[i] = chosen[i].Name
		_, errs[i] = c.Typed.AppsV1().Deployments(lab.Namespace).Patch(ctx, names[i], types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: FieldManager})
	})
	for _, err := range errs {
		if err != nil {
			return names, fmt.Errorf("scaling the nodes: %w", err)
		}
	}
	return names, nil
}
