package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/controller"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Prepare notes, before an apply, which devices Settle is to restart after it.
func (c *Client) Prepare(ctx context.Context, l *Lab, d Diff) error {
	return c.forEach(d, func(n NodeDiff) error {
		if !n.restarts() || n.due {
			return nil
		}
		return c.setDue(ctx, l.Namespace, n.Pod, `"links"`)
	})
}

// Settle does, after an apply, what the objects alone do not: Pods of which the
// links or the names they know changed are touched, so that the kubelet brings
// them the change at once, and those of kinds that take their links at their
// start are replaced; so are those for which the kubelet waits before it tries
// again to pull an image. Pods that the API server refused are asked for again.
func (c *Client) Settle(ctx context.Context, l *Lab, d Diff) error {
	if len(d.Nodes) == 0 {
		return nil
	}
	pods, err := c.Typed.CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{LabelSelector: nodeSelector(l.Name)})
	if err != nil {
		return fmt.Errorf("looking at the lab's Pods: %w", err)
	}
	waits := map[string]bool{}
	for i := range pods.Items {
		if backsOff(&pods.Items[i]) {
			waits[pods.Items[i].Labels[contract.LabelPod]] = true
		}
	}
	if err := c.askAgain(ctx, l); err != nil {
		return err
	}
	return c.forEach(d, func(n NodeDiff) error {
		if act := c.settle(n, d.names, waits[n.Pod]); act != nil {
			if err := act(ctx, l.Namespace, n.Pod); err != nil {
				return err
			}
		}
		if n.Action == ActionDelete || !n.due && !n.restarts() {
			return nil
		}
		return c.setDue(ctx, l.Namespace, n.Pod, "null")
	})
}

// requestsAtOnce bounds the requests that are under way.
const requestsAtOnce = 16

// forEach calls do for all Pods of a diff, some at a time.
func (c *Client) forEach(d Diff, do func(NodeDiff) error) error {
	errs := make([]error, len(d.Nodes))
	bounded.Each(len(d.Nodes), requestsAtOnce, func(i int) { errs[i] = do(d.Nodes[i]) })
	return errors.Join(errs...)
}

// restarts tells that an apply changes links of a device that has to be restarted for
// them, and that it does not replace the Pod anyway.
func (n NodeDiff) restarts() bool {
	return n.links && !n.replaced && (n.Action == ActionRestart || n.Action == ActionRecreate)
}

// settle is what one Pod needs; nil for nothing, as where it is replaced anyway.
func (c *Client) settle(n NodeDiff, names, waits bool) func(context.Context, string, string) error {
	stays := n.Action == ActionLive || n.Action == ActionNone
	switch {
	case n.restarts(), waits && stays:
		return c.Restart
	case n.links && n.Action == ActionLive, names && stays:
		return c.touch
	}
	return nil
}

// backsOff tells that the kubelet has failed to pull an image of a Pod, and waits before
// it tries again, for up to five minutes.
func backsOff(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && s.State.Waiting.Reason == "ImagePullBackOff"
	})
}

// annotationAskedAgain tells when a deploy last had a Deployment's Pods asked for again.
const annotationAskedAgain = "c9s.dev/asked-again"

// askAgain has the Pods asked for at once that the API server refused: the ReplicaSet's
// controller waits between its tries, in the end for a quarter of an hour. An
// annotation of a Deployment is copied to its ReplicaSet, which is then looked at.
func (c *Client) askAgain(ctx context.Context, l *Lab) error {
	list, err := c.Typed.AppsV1().Deployments(l.Namespace).List(ctx, metav1.ListOptions{LabelSelector: nodeSelector(l.Name)})
	if err != nil {
		return fmt.Errorf("looking at the lab's Deployments: %w", err)
	}
	refused := slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return status.Refused(&d) == nil })
	errs := make([]error, len(refused))
	now := time.Now().UTC().Format(time.RFC3339Nano)
	bounded.Each(len(refused), requestsAtOnce, func(i int) {
		errs[i] = c.annotate(ctx, l.Namespace, refused[i].Name, annotationAskedAgain, fmt.Sprintf("%q", now))
	})
	return errors.Join(errs...)
}

// setDue sets AnnotationRestartDue to a JSON value.
func (c *Client) setDue(ctx context.Context, namespace, deployment, value string) error {
	return c.annotate(ctx, namespace, deployment, AnnotationRestartDue, value)
}

// annotate sets an annotation of a Deployment, if there still is one, to a JSON value.
func (c *Client) annotate(ctx context.Context, namespace, deployment, key, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value)
	_, err := c.Typed.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: FieldManager + "-settle"})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotating Deployment %s: %w", deployment, err)
	}
	return nil
}

// touch changes an annotation of a Deployment's Pod, whereupon the kubelet looks
// at its volumes.
func (c *Client) touch(ctx context.Context, namespace, deployment string) error {
	pods, err := c.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelPod + "=" + deployment})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			continue // the next one reads what there is then
		}
		err := controller.Touch(ctx, c.Typed, &pods.Items[i], FieldManager)
		if apierrors.IsForbidden(err) {
			continue // the kubelet looks by itself, within a minute or two
		}
		if err != nil {
			return fmt.Errorf("touching Pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}
