package bringup

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/test/cluster/internal/addons"
	"github.com/c9s-lab/c9s/test/cluster/internal/kube"
)

// patience is how long a loaded or an emulated machine may take for one step.
const patience = 6 * time.Minute

// until asks again until the answer is yes. The last reason for a no is reported
// when patience ends.
func until(ctx context.Context, ask func(context.Context) (ok bool, why string)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, why := ask(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up after %s: %s (see `c9s-cluster logs`)", patience, why)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func waitForAPIServer(ctx context.Context, r *run) error {
	client, err := kube.New(r.cluster.Kubeconfig())
	if err != nil {
		return err
	}
	r.client = client
	return until(ctx, func(ctx context.Context) (bool, string) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		err := client.Typed.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		return err == nil, fmt.Sprint(err)
	})
}

// applyDNS is patient: a moment after the API server says that it is ready, the
// namespace kube-system may still be missing.
func applyDNS(ctx context.Context, r *run) error {
	return until(ctx, func(ctx context.Context) (bool, string) {
		err := applyAll(ctx, r, addons.CoreDNS(r.cluster))
		return err == nil, fmt.Sprint(err)
	})
}

func applyFakeWorkers(ctx context.Context, r *run) error {
	for i := range r.cluster.FakeWorkers {
		if err := applyAll(ctx, r, addons.FakeNode(i+1)); err != nil {
			return err
		}
	}
	return nil
}

func applyAll(ctx context.Context, r *run, manifest []byte) error {
	objects, err := kube.Parse(manifest)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if _, err := r.client.Apply(ctx, "", object, false); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func waitForWorkers(ctx context.Context, r *run) error {
	want := r.cluster.Workers + r.cluster.FakeWorkers
	return until(ctx, func(ctx context.Context) (bool, string) {
		list, err := r.client.Typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		ready, waiting := 0, []string{}
		for _, n := range list.Items {
			if isReady(n) {
				ready++
			} else {
				waiting = append(waiting, n.Name)
			}
		}
		return ready >= want, fmt.Sprintf("%d of %d workers are ready, not %s", ready, want, strings.Join(waiting, ", "))
	})
}

func isReady(n corev1.Node) bool {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func waitForDNS(ctx context.Context, r *run) error {
	return until(ctx, func(ctx context.Context) (bool, string) {
		d, err := r.client.Typed.AppsV1().Deployments(addons.DNSNamespace).Get(ctx, addons.DNSName, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return d.Status.AvailableReplicas > 0, "CoreDNS is not available"
	})
}

func waitForServiceAccount(ctx context.Context, r *run) error {
	return until(ctx, func(ctx context.Context) (bool, string) {
		_, err := r.client.Typed.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
}
