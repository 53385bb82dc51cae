package doctor

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// mayLand reports whether the scheduler may put a Pod on a worker, room aside. What
// keeps Pods off workers that are not ready counts only while it lasts, and is reported
// elsewhere.
func mayLand(spec *corev1.PodSpec, w *corev1.Node) bool {
	pod := &corev1.Pod{Spec: *spec}
	ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(w)
	return err == nil && ok && tolerates(spec, w)
}

func tolerates(spec *corev1.PodSpec, w *corev1.Node) bool {
	for i := range w.Spec.Taints {
		t := &w.Spec.Taints[i]
		if t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		tolerated := false
		for _, toleration := range spec.Tolerations {
			tolerated = tolerated || covers(toleration, *t)
		}
		if !tolerated {
			return false
		}
	}
	return true
}

// covers reports whether a toleration meets a taint (Kubernetes' API reference,
// Toleration).
func covers(t corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
}

// ready reports whether a worker takes new Pods at all.
func ready(w *corev1.Node) bool {
	if w.Spec.Unschedulable {
		return false
	}
	for _, c := range w.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// landing are the workers that take new Pods and where some Pod of the lab may
// land.
func landing(f Facts, n Needs) []*corev1.Node {
	var out []*corev1.Node
	for i := range f.Workers {
		w := &f.Workers[i]
		if !ready(w) {
			continue
		}
		for j := range n.Pods {
			if mayLand(&n.Pods[j].Spec, w) {
				out = append(out, w)
				break
			}
		}
	}
	return out
}
