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

// Prepare records, before an apply, which devices Settle must restart after it.
func (c *Client) Prepare(ctx context.Context, l *Lab, d Diff) error {
	return c.forEach(d, func(n NodeDiff) error {
		if !n.restarts() || n.due {
			return nil
		}
		return c.setDue(ctx, l.Namespace, n.Pod, `"links"`)
	})
}

// Settle completes an apply. It annotates Pods whose
// links or directory changed, so that the kubelet updates
// their volumes at once. It replaces Pods of kinds that read links only at
// start, and Pods for which the kubelet waits before it retries
// an image pull. It makes Kubernetes retry Pods that the API server rejected.
func (c *Client) Settle(ctx context.Context, l *Lab, d Diff) error {
	if len(d.Nodes) == 0 {
		return nil
	}
	pods, err := c.Typed.CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{LabelSelector: nodeSelector(l.Name)})
	if err != nil {
		return fmt.Errorf("listing the lab's Pods: %w", err)
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

// requestsAtOnce limits parallel requests.
const requestsAtOnce = 16

// forEach calls do for all Pods of a diff, several in parallel.
func (c *Client) forEach(d Diff, do func(NodeDiff) error) error {
	errs := make([]error, len(d.Nodes))
	bounded.Each(len(d.Nodes), requestsAtOnce, func(i int) { errs[i] = do(d.Nodes[i]) })
	return errors.Join(errs...)
}

// restarts reports whether an apply changes links of a device that must restart for
// them, and does not replace the Pod anyway.
func (n NodeDiff) restarts() bool {
	return n.links && !n.replaced && (n.Action == ActionRestart || n.Action == ActionRecreate)
}

// settle returns what one Pod needs, or nil for nothing, for example if it is replaced anyway.
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

// backsOff reports whether the kubelet has failed to pull an image of a Pod and waits before
// it retries, for up to five minutes.
func backsOff(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && s.State.Waiting.Reason == "ImagePullBackOff"
	})
}

// annotationAskedAgain holds when a deploy last made Kubernetes retry a Deployment's Pods.
const annotationAskedAgain = "c9s.dev/asked-again"

// askAgain makes Kubernetes retry Pods that the API server rejected. The ReplicaSet
// controller waits between retries, up to a quarter of an hour. An
// annotation of a Deployment is copied to its ReplicaSet, which triggers a retry.
func (c *Client) askAgain(ctx context.Context, l *Lab) error {
	list, err := c.Typed.AppsV1().Deployments(l.Namespace).List(ctx, metav1.ListOptions{LabelSelector: nodeSelector(l.Name)})
	if err != nil {
		return fmt.Errorf("listing the lab's Deployments: %w", err)
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

// annotate sets an annotation of a Deployment, if it still exists, to a JSON value.
func (c *Client) annotate(ctx context.Context, namespace, deployment, key, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value)
	_, err := c.Typed.AppsV1().Deployments(namespace).Patch(ctx, deployment, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: FieldManager + "-settle"})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotating Deployment %s: %w", deployment, err)
	}
	return nil
}

// touch changes an annotation of a Deployment's Pod, which makes the kubelet
// update its volumes.
func (c *Client) touch(ctx context.Context, namespace, deployment string) error {
	pods, err := c.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelPod + "=" + deployment})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			continue // the next try reads the current state
		}
		err := controller.Touch(ctx, c.Typed, &pods.Items[i], FieldManager)
		if apierrors.IsForbidden(err) {
			continue // the kubelet updates it within a minute or two anyway
		}
		if err != nil {
			return fmt.Errorf("annotating Pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}
