package status

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// reasonLost is the reason of a Pod whose sidecar has lost its network namespace.
const reasonLost = "NamespaceLost"

// Lost reports whether a Pod's sidecar has ended because its network namespace, and the
// Pod's cluster interface with it, is lost. Such a Pod must be replaced. A sidecar that
// runs again has found its namespace, or is about to report the loss once more.
func Lost(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || Ended(pod) {
		return false
	}
	for _, s := range pod.Status.InitContainerStatuses {
		if s.Name != WireContainer || s.State.Running != nil {
			continue
		}
		end := s.State.Terminated
		if end == nil {
			end = s.LastTerminationState.Terminated
		}
		return end != nil && strings.Contains(end.Message, contract.LostMessage)
	}
	return false
}
