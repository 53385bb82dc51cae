package controller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
)

// replacer deletes Pods that have lost the network namespace of their sidecar, so that
// their Deployments replace them. Without a controller the kubelet evicts them, some time
// later.
type replacer struct {
	client kubernetes.Interface
	events *eventWriter
	// deleted are the Pods that this leader has deleted and that are still there.
	deleted map[types.UID]bool
}

func newReplacer(client kubernetes.Interface, events *eventWriter) *replacer {
	return &replacer{client: client, events: events, deleted: map[types.UID]bool{}}
}

// replace deletes each lost Pod once.
func (r *replacer) replace(ctx context.Context, pods []*corev1.Pod) error {
	var errs []error
	there := map[types.UID]bool{}
	for _, pod := range pods {
		there[pod.UID] = true
		if r.deleted[pod.UID] || !status.Lost(pod) {
			continue
		}
		// Another Pod may have the name by now.
		err := r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("deleting Pod %s, whose sidecar has lost its network namespace: %w", pod.Name, err))
			continue
		}
		r.deleted[pod.UID] = true
		errs = append(errs, r.events.write(ctx, pod.Labels[contract.LabelPod], corev1.EventTypeWarning, "PodReplaced",
			fmt.Sprintf("Pod %s is replaced: its sidecar has lost its network namespace", pod.Name)))
	}
	for uid := range r.deleted {
		if !there[uid] {
			delete(r.deleted, uid)
		}
	}
	return errors.Join(errs...)
}
