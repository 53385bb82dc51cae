package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/testcluster"
)

// A Deployment whose Pod is evicted a second after its worker was lost.
const restless = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: restless}
spec:
  selector: {matchLabels: {app: restless}}
  template:
    metadata: {labels: {app: restless}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {kubernetes.io/os: linux}
      tolerations:
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
      containers: [{name: main, image: IMAGE, command: [sleep, infinity]}]
`

func TestEvictionFromALostWorker(t *testing.T) {
	for _, failure := range []struct {
		name string
		fail func(*testcluster.Cluster, testing.TB, string)
		back func(*testcluster.Cluster, testing.TB, string)
	}{
		{"stopped", (*testcluster.Cluster).StopWorker, (*testcluster.Cluster).StartWorker},
		{"cut off", (*testcluster.Cluster).CutWorker, (*testcluster.Cluster).HealWorker},
	} {
		t.Run(failure.name, func(t *testing.T) {
			c := testcluster.Shared(t)
			ns := c.Namespace(t)
			c.Apply(t, ns, strings.ReplaceAll(restless, "IMAGE", hostImage))
			c.WaitAvailable(t, ns, "restless")
			lost := runningPod(t, c, ns, "")
			failure.fail(c, t, lost.Spec.NodeName)

			began := time.Now()
			testcluster.Eventually(t, patience, "a Pod on another worker", func() error {
				pods, err := c.Typed.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					return err
				}
				for _, pod := range pods.Items {
					if pod.Spec.NodeName != lost.Spec.NodeName && pod.Status.Phase == corev1.PodRunning {
						return nil
					}
				}
				return fmt.Errorf("%d Pods, none of them there", len(pods.Items))
			})
			t.Logf("running on another worker after %s", time.Since(began).Round(100*time.Millisecond))

			failure.back(c, t, lost.Spec.NodeName)
			testcluster.Eventually(t, patience, "the lost Pod to be gone", func() error {
				pods, err := c.Typed.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
				if err == nil && len(pods.Items) != 1 {
					err = fmt.Errorf("there are %d Pods", len(pods.Items))
				}
				return err
			})
			checkWorker(t, c, ns, lost.Spec.NodeName)
		})
	}
}

// checkWorker runs a Pod on a worker that came back.
func checkWorker(t *testing.T, c *testcluster.Cluster, ns, worker string) {
	t.Helper()
	c.Apply(t, ns, onNode("again", worker, hostImage, wait))
	c.WaitReady(t, ns, "again")
	testcluster.Eventually(t, patience, "the API server's Service from "+worker, func() error {
		_, err := c.TryExec(t.Context(), ns, "again", "", "curl", "-sk", "-m", "2", "https://kubernetes.default/healthz")
		return err
	})
}

func runningPod(t *testing.T, c *testcluster.Cluster, ns, selector string) *corev1.Pod {
	t.Helper()
	pods, err := c.Typed.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			return &pods.Items[i]
		}
	}
	t.Fatalf("no Pod runs in %s", ns)
	return nil
}
