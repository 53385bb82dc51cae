package cluster

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// Workers returns the names of the cluster's workers, and of those that are cordoned.
func (c *Client) Workers(ctx context.Context) (all, cordoned []string, err error) {
	list, err := c.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("listing the workers: %w", err)
	}
	for _, n := range list.Items {
		all = append(all, n.Name)
		if n.Spec.Unschedulable {
			cordoned = append(cordoned, n.Name)
		}
	}
	slices.Sort(all)
	return all, cordoned, nil
}

// Cordon keeps new Pods off a worker, or lets them on it again.
func (c *Client) Cordon(ctx context.Context, worker string, cordoned bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned)
	if _, err := c.Typed.CoreV1().Nodes().Patch(ctx, worker, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}); err != nil {
		return fmt.Errorf("changing worker %s (requires the right to patch nodes): %w", worker, err)
	}
	return nil
}

// Drain deletes the Pods of a lab's nodes on a worker, which are then scheduled elsewhere if the
// worker is cordoned. Pods that are not the lab's stay.
func (c *Client) Drain(ctx context.Context, lab Found, worker string) error {
	err := c.Typed.CoreV1().Pods(lab.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: nodeSelector(lab.Name), FieldSelector: fields.OneTermEqualSelector("spec.nodeName", worker).String(),
	})
	if err != nil {
		return fmt.Errorf("deleting the lab's Pods on worker %s: %w", worker, err)
	}
	return nil
}
