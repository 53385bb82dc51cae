package status

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Trim returns a Pod or Deployment with only the fields from which its state follows. Use
// it as the transform of an informer, to save most of its memory.
func Trim(o any) (any, error) {
	switch o := o.(type) {
	case *corev1.Pod:
		return trimPod(o), nil
	case *appsv1.Deployment:
		out := &appsv1.Deployment{ObjectMeta: o.ObjectMeta, Status: o.Status}
		out.ManagedFields = nil
		out.Spec.Replicas = o.Spec.Replicas
		return out, nil
	}
	return o, nil
}

func trimPod(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Labels:      kept(pod.Labels, contract.LabelPod, contract.LabelKind),
			Annotations: kept(pod.Annotations, contract.AnnotationContainers),
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message, StartTime: pod.Status.StartTime,
			PodIP: pod.Status.PodIP, PodIPs: pod.Status.PodIPs, Conditions: pod.Status.Conditions,
			InitContainerStatuses: trimStates(pod.Status.InitContainerStatuses), ContainerStatuses: trimStates(pod.Status.ContainerStatuses),
		},
	}
	for _, c := range pod.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return out
}

func kept(all map[string]string, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		if value, ok := all[name]; ok {
			out[name] = value
		}
	}
	return out
}

func trimStates(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range all {
		out = append(out, corev1.ContainerStatus{
			Name: s.Name, State: s.State, LastTerminationState: s.LastTerminationState, RestartCount: s.RestartCount, Started: s.Started, Ready: s.Ready,
		})
	}
	return out
}
