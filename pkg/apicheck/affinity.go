package apicheck

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// affinity checks what a policy or an overlay wrote about placement.
func (c *checker) affinity(a *corev1.Affinity) {
	if a == nil {
		return
	}
	if node := a.NodeAffinity; node != nil {
		if required := node.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			if len(required.NodeSelectorTerms) == 0 {
				c.errorf(CodeSelector, "the required node affinity has no term")
			}
			for _, term := range required.NodeSelectorTerms {
				c.selectorTerm(term)
			}
		}
		for _, preferred := range node.PreferredDuringSchedulingIgnoredDuringExecution {
			c.weight(preferred.Weight)
			c.selectorTerm(preferred.Preference)
		}
	}
	if pod := a.PodAffinity; pod != nil {
		c.podTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if pod := a.PodAntiAffinity; pod != nil {
		c.podTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution, pod.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (c *checker) weight(weight int32) {
	if weight < 1 || weight > 100 {
		c.errorf(CodeSelector, "the weight %d of a preferred affinity is not between 1 and 100", weight)
	}
}

// selectorTerm checks the expressions over a worker's labels.
func (c *checker) selectorTerm(term corev1.NodeSelectorTerm) {
	for _, e := range term.MatchExpressions {
		for _, why := range validation.IsQualifiedName(e.Key) {
			c.errorf(CodeSelector, "the key %q of a node affinity is not legal: %s", e.Key, why)
		}
		legal := false
		switch e.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			legal = len(e.Values) > 0
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			legal = len(e.Values) == 0
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			legal = len(e.Values) == 1
		default:
			c.errorf(CodeSelector, "the operator %q of a node affinity is not In, NotIn, Exists, DoesNotExist, Gt or Lt", e.Operator)
			continue
		}
		if !legal {
			c.errorf(CodeSelector, "the operator %s of a node affinity does not take %d values", e.Operator, len(e.Values))
		}
	}
}

func (c *checker) podTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	terms := slices.Clone(required)
	for _, p := range preferred {
		c.weight(p.Weight)
		terms = append(terms, p.PodAffinityTerm)
	}
	for _, term := range terms {
		for _, why := range validation.IsQualifiedName(term.TopologyKey) {
			c.errorf(CodeSelector, "the topologyKey %q of a Pod affinity is not legal: %s", term.TopologyKey, why)
		}
	}
}
