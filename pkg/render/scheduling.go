package render

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// schedule says where the Pod may run: what the policies of its nodes demand, all
// at once, on real Linux workers, spread over them or packed.
func (b *deploymentBuilder) schedule(spec *corev1.PodSpec) {
	spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
	var affinity *corev1.Affinity
	for _, m := range b.pod.members {
		policy := m.node.Policy
		for _, key := range slices.Sorted(maps.Keys(policy.NodeSelector)) {
			value := policy.NodeSelector[key]
			if have, ok := spec.NodeSelector[key]; ok && have != value && key != corev1.LabelOSStable {
				b.conflict(m, "nodeSelector "+key)
			}
			spec.NodeSelector[key] = value
		}
		for _, t := range policy.Tolerations {
			if !slices.ContainsFunc(spec.Tolerations, func(have corev1.Toleration) bool { return reflect.DeepEqual(have, t) }) {
				spec.Tolerations = append(spec.Tolerations, t)
			}
		}
		for _, name := range policy.ImagePullSecrets {
			ref := corev1.LocalObjectReference{Name: name}
			if !slices.Contains(spec.ImagePullSecrets, ref) {
				spec.ImagePullSecrets = append(spec.ImagePullSecrets, ref)
			}
		}
		if policy.Affinity != nil {
			if affinity != nil && !reflect.DeepEqual(affinity, policy.Affinity) {
				b.conflict(m, "affinity")
			}
			affinity = policy.Affinity
		}
	}
	spec.Tolerations = append(spec.Tolerations, leaveLostWorkers(spec.Tolerations)...)
	spec.Affinity = b.affinity(affinity)
	if b.index.lab.Pack {
		spec.Affinity.PodAffinity = b.packed(spec.Affinity.PodAffinity)
		return
	}
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       corev1.LabelHostname,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{contract.LabelLab: b.index.labLabel}},
	}}
}

// packed adds that the Pod prefers workers with other Pods of the lab: the more, the better.
// The term is the same for all Pods, whatever their links, because an edit of the links must
// not restart them.
func (b *deploymentBuilder) packed(affinity *corev1.PodAffinity) *corev1.PodAffinity {
	if affinity == nil {
		affinity = &corev1.PodAffinity{}
	}
	affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{
		Weight: 100,
		PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{contract.LabelLab: b.index.labLabel}},
		},
	})
	return affinity
}

// lostWorkerSeconds is how long a Pod stays with a worker that is not heard of.
// Kubernetes' own five minutes suit services that have other replicas; a lab has
// one of each device.
const lostWorkerSeconds = 30

// leaveLostWorkers are the tolerations that the API server would add with its own
// time (DefaultTolerationSeconds admission), unless the policy has some.
func leaveLostWorkers(have []corev1.Toleration) []corev1.Toleration {
	var out []corev1.Toleration
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if slices.ContainsFunc(have, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}) {
			continue
		}
		out = append(out, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: new(int64(lostWorkerSeconds)),
		})
	}
	return out
}

func (b *deploymentBuilder) conflict(m member, what string) {
	b.diags.Errorf(CodePolicyConflict, m.node.Pos, "give all nodes of the Pod the same policy",
		"node %q shares a Pod with node %q, whose policy sets a different %s", m.node.Name, b.pod.primary.Name, what)
}

func (b *deploymentBuilder) affinity(policy *corev1.Affinity) *corev1.Affinity {
	out := &corev1.Affinity{}
	if policy != nil {
		out = policy.DeepCopy()
	}
	var extra []corev1.NodeSelectorRequirement
	kvm, required := false, false
	for _, m := range b.pod.members {
		kvm, required = kvm || m.plan.Needs.KVM, required || m.needsKVM()
		if m.plan.Needs.SSSE3 && extra == nil {
			extra = append(extra, corev1.NodeSelectorRequirement{
				Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"},
			})
		}
	}
	out.NodeAffinity = realWorkers(out.NodeAffinity, extra...)
	if kvm {
		b.kvmWorkers(out.NodeAffinity, required && b.index.opts.RequireKVM)
	}
	return out
}

// kvmWorkers adds the labels of workers with KVM. They are required if some worker of the
// cluster has one, and otherwise preferred: on a cluster without the labels, nothing would
// ever be scheduled. A node that can do without KVM prefers them too.
func (b *deploymentBuilder) kvmWorkers(affinity *corev1.NodeAffinity, require bool) {
	has := func(label string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}
	}
	if require {
		required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
		var terms []corev1.NodeSelectorTerm // alternatives
		for _, term := range required.NodeSelectorTerms {
			for _, label := range contract.KVMLabels {
				one := *term.DeepCopy()
				one.MatchExpressions = append(one.MatchExpressions, has(label))
				terms = append(terms, one)
			}
		}
		required.NodeSelectorTerms = terms
		return
	}
	for i, label := range contract.KVMLabels {
		weight := int32(50)
		if i == 0 {
			weight = 100
		}
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{has(label)}}})
	}
}

// realWorkers adds to a node affinity, in place, that the worker is no virtual
// kubelet (which runs no privileged Pods), and extra. Terms are alternatives, so
// each of them gets the requirements.
func realWorkers(affinity *corev1.NodeAffinity, extra ...corev1.NodeSelectorRequirement) *corev1.NodeAffinity {
	requirements := append([]corev1.NodeSelectorRequirement{
		{Key: "type", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"virtual-kubelet"}},
	}, extra...)
	if affinity == nil {
		affinity = &corev1.NodeAffinity{}
	}
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range required.NodeSelectorTerms {
		term := &required.NodeSelectorTerms[i]
		term.MatchExpressions = append(term.MatchExpressions, requirements...)
	}
	return affinity
}
