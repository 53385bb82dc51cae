package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/pkg/controller"
	"github.com/c9s-lab/c9s/pkg/render"
)

// Settle does, after an apply, what the objects alone do not: Pods whose links
// changed are touched, so that the kubelet brings them the change at once, and
// those of kinds that take their links at their start are replaced.
func (c *Client) Settle(ctx context.Context, l *Lab, d Diff) error {
	var errs []error
	for _, n := range d.Nodes {
		if !n.links {
			continue
		}
		switch {
		case n.Action == ActionLive:
			errs = append(errs, c.touch(ctx, l.Namespace, n.Pod))
		case n.Action == ActionRestart, n.Action == ActionRecreate && linkActions[n.mode] == ActionRecreate && len(n.Why) == 1:
			errs = append(errs, c.Restart(ctx, l.Namespace, n.Pod))
		}
	}
	return errors.Join(errs...)
}

// touch changes an annotation of a Deployment's Pod, whereupon the kubelet looks
// at its volumes.
func (c *Client) touch(ctx context.Context, namespace, deployment string) error {
	pods, err := c.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: render.LabelPod + "=" + deployment})
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, controller.AnnotationSynced, time.Now().UTC().Format(time.RFC3339Nano))
	for i := range pods.Items {
		if _, err := c.Typed.CoreV1().Pods(namespace).Patch(ctx, pods.Items[i].Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: FieldManager}); err != nil {
			return fmt.Errorf("touching Pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}
