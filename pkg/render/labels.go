package render

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// reservedLabels are domains whose labels mean something to Kubernetes, to c9s or to the
// proxies of service meshes.
var reservedLabels = []string{"kubernetes.io", "k8s.io", "c9s.dev", "c9s.run", "istio.io", "linkerd.io"}

// carried reports whether a label of the topology can be a label of a Pod.
func carried(key, value string) bool {
	if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
		return false
	}
	domain, _, hasDomain := strings.Cut(key, "/")
	return !hasDomain || !slices.ContainsFunc(reservedLabels, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// podLabels returns the labels of the topology that the Pod carries, so that kubectl selects
// by them. If nodes of a Pod have different values for a label, the first node's counts.
func (v *podView) podLabels() map[string]string {
	out := map[string]string{}
	for _, m := range v.members {
		for key, value := range m.node.Labels {
			if _, have := out[key]; !have && carried(key, value) {
				out[key] = value
			}
		}
	}
	return out
}

// warnLabels reports labels of the topology that no Pod can carry, once.
func (b *labBuilder) warnLabels() {
	var first diag.Pos
	var example string
	keys := map[string]bool{}
	for _, n := range b.index.lab.Nodes {
		for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
			if carried(key, n.Labels[key]) || keys[key] || strings.HasPrefix(key, "c9s.run/") { // compile reads those
				continue
			}
			if len(keys) == 0 {
				first, example = n.Pos, key
			}
			keys[key] = true
		}
	}
	if len(keys) == 0 {
		return
	}
	more := ""
	if len(keys) > 1 {
		more = " (and " + diag.Count(len(keys)-1, "other label") + ")"
	}
	b.diags.Warnf(CodeLabel, first, "none needed: c9s exec --label and policies select by it, kubectl does not",
		"label %q%s cannot be a label of a Pod in Kubernetes; it is kept in an annotation", example, more)
}
