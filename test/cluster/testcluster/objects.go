package testcluster

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/test/cluster/internal/kube"
)

// Namespace makes a namespace and removes it, with all in it, when the test ends.
// A failed test's Pods and events are reported first.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	ctx := t.Context()
	made, err := c.Typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.describe(t, made.Name)
		}
		c.RemoveNamespace(t, made.Name)
	})
	// Pods are rejected until the namespace has its service account.
	Eventually(t, 3*time.Minute, "the default service account of "+made.Name, func() error {
		_, err := c.Typed.CoreV1().ServiceAccounts(made.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return made.Name
}

// RemoveNamespace removes a namespace and waits until it no longer exists. Its Pods are
// given no time to end.
func (c *Cluster) RemoveNamespace(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	atOnce := int64(0)
	_ = c.Typed.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &atOnce}, metav1.ListOptions{})
	err := c.Typed.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	for err == nil && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		_, err = c.Typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	}
	if !apierrors.IsNotFound(err) {
		t.Errorf("namespace %s was not removed: %v %v", name, err, ctx.Err())
	}
}

func (c *Cluster) describe(t testing.TB, namespace string) {
	ctx := context.Background()
	pods, err := c.Typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Log(err)
		return
	}
	for _, pod := range pods.Items {
		t.Logf("pod %s on %s: %s %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase, notReady(&pod))
	}
	events, err := c.Typed.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Log(err)
		return
	}
	for _, event := range events.Items {
		if event.Type == corev1.EventTypeWarning {
			t.Logf("event on %s: %s: %s", event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
}

// Objects reads a manifest of one or more documents.
func Objects(t testing.TB, manifest string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := kube.Parse([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// ParseObjects is Objects for output that may be malformed.
func ParseObjects(manifest []byte) ([]*unstructured.Unstructured, error) { return kube.Parse(manifest) }

// Apply applies a manifest by server-side apply.
func (c *Cluster) Apply(t testing.TB, namespace, manifest string) {
	t.Helper()
	for _, object := range Objects(t, manifest) {
		if _, err := c.client.Apply(t.Context(), namespace, object, false); err != nil {
			t.Fatalf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// DryRun asks the API server whether it would take an object.
func (c *Cluster) DryRun(ctx context.Context, namespace string, object *unstructured.Unstructured) error {
	_, err := c.client.Apply(ctx, namespace, object, true)
	return err
}

// Annotate sets an annotation of a Pod.
func (c *Cluster) Annotate(t testing.TB, namespace, pod, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	_, err := c.Typed.CoreV1().Pods(namespace).Patch(t.Context(), pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("annotating Pod %s: %v", pod, err)
	}
}

// Pod reads a Pod.
func (c *Cluster) Pod(t testing.TB, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := c.Typed.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// WaitReady waits until Pods are ready, and returns them.
func (c *Cluster) WaitReady(t testing.TB, namespace string, names ...string) []*corev1.Pod {
	t.Helper()
	pods := make([]*corev1.Pod, len(names))
	for i, name := range names {
		Eventually(t, 3*time.Minute, "Pod "+name+" to be ready", func() error {
			pod, err := c.Typed.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			pods[i] = pod
			if why := notReady(pod); why != "" {
				return fmt.Errorf("%s", why)
			}
			return nil
		})
	}
	return pods
}

// WaitAvailable waits until a Deployment is rolled out.
func (c *Cluster) WaitAvailable(t testing.TB, namespace, deployment string) {
	t.Helper()
	Eventually(t, 5*time.Minute, "Deployment "+deployment+" to be available", func() error {
		d, err := c.Typed.AppsV1().Deployments(namespace).Get(t.Context(), deployment, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas < *d.Spec.Replicas || d.Status.UpdatedReplicas < *d.Spec.Replicas {
			return fmt.Errorf("%d of %d replicas are available", d.Status.AvailableReplicas, *d.Spec.Replicas)
		}
		return nil
	})
}

// notReady says why a Pod is not ready; "" when it is.
func notReady(pod *corev1.Pod) string {
	var why bytes.Buffer
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return ""
		}
	}
	fmt.Fprintf(&why, "%s", pod.Status.Phase)
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if waiting := s.State.Waiting; waiting != nil {
			fmt.Fprintf(&why, ", %s: %s %s", s.Name, waiting.Reason, waiting.Message)
		}
		if ended := s.State.Terminated; ended != nil && ended.ExitCode != 0 {
			fmt.Fprintf(&why, ", %s: exit code %d %s", s.Name, ended.ExitCode, strings.TrimSpace(ended.Message))
		}
	}
	return why.String()
}

// leastAsked is how often Eventually asks at least: time in which the machine was
// paused is no patience.
const leastAsked = 5

// Eventually asks again until there is no error, and fails the test with the last
// one when it takes too long.
func Eventually(t testing.TB, patience time.Duration, what string, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for asked := 1; ; asked++ {
		err := ask()
		if err == nil {
			return
		}
		if asked >= leastAsked && time.Now().After(deadline) {
			t.Fatalf("waited %s for %s: %v", patience, what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
