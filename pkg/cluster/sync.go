package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/pkg/controller"
	"github.com/c9s-lab/c9s/pkg/render/own"
)

// Settle does, after an apply, what the objects alone do not: Pods of which the
// links or the names they know changed are touched, so that the kubelet brings
// them the change at once, and those of kinds that take their links at their
// start are replaced.
func (c *Client) Settle(ctx context.Context, l *Lab, d Diff) error {
	var (
		wg    sync.WaitGroup
		slots = make(chan struct{}, 16)
		errs  = make([]error, len(d.Nodes))
	)
	for i, n := range d.Nodes {
		act := c.settle(n, d.names)
		if act == nil {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = act(ctx, l.Namespace, n.Pod)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// settle is what one Pod needs; nil for nothing, as where it is replaced anyway.
func (c *Client) settle(n NodeDiff, names bool) func(context.Context, string, string) error {
	switch {
	case n.links && n.Action == ActionRestart, n.links && n.Action == ActionRecreate && linkActions[n.mode] == ActionRecreate && len(n.Why) == 1:
		return c.Restart
	case n.links && n.Action == ActionLive, names && (n.Action == ActionLive || n.Action == ActionNone):
		return c.touch
	}
	return nil
}

// touch changes an annotation of a Deployment's Pod, whereupon the kubelet looks
// at its volumes.
func (c *Client) touch(ctx context.Context, namespace, deployment string) error {
	pods, err := c.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: own.LabelPod + "=" + deployment})
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
