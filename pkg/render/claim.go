package render

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// defaultClaimSize is what a claim asks for where the policy names no size.
const defaultClaimSize = "1Gi"

func (v *podView) claimName() string { return contract.ServiceName(v.name, "data") }

// needsClaim reports whether a node of the Pod asks for persistence and has what to
// keep. Then all folders of the Pod are on the one claim.
func (v *podView) needsClaim() bool {
	for _, m := range v.members {
		if policy := m.node.Policy.Persistence; policy != nil && policy.Enabled && keeps(m) {
			return true
		}
	}
	return false
}

func keeps(m member) bool {
	if len(m.plan.Persist) > 0 || m.plan.Needs.KVM {
		return true
	}
	for _, c := range m.plan.Containers {
		for _, mount := range c.Mounts {
			if mount.Volume != "" {
				return true
			}
		}
	}
	return false
}

// claim asks for the largest size that a node of the Pod wants, from the first
// storage class that one names.
func (b *podBuilder) claim() *corev1.PersistentVolumeClaim {
	var size resource.Quantity
	var class *string
	for _, m := range b.pod.members {
		policy := m.node.Policy.Persistence
		if policy == nil || !policy.Enabled {
			continue
		}
		if want := b.claimSize(m.node, policy.Size); want.Cmp(size) > 0 {
			size = want
		}
		if class == nil && policy.StorageClass != "" {
			class = &policy.StorageClass
		}
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   typeMeta("v1", "PersistentVolumeClaim"),
		ObjectMeta: b.index.nodeMeta(b.pod.claimName(), b.pod.name, b.pod.primary),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: class,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}

func (b *podBuilder) claimSize(n *lab.Node, text string) resource.Quantity {
	if text == "" {
		text = defaultClaimSize
	}
	size, err := resource.ParseQuantity(text)
	if err != nil || size.Sign() <= 0 {
		b.diags.Errorf(CodeQuantity, n.Pos, "write a size such as 10Gi", "node %q: persistence size %q is not a Kubernetes quantity", n.Name, text)
		return resource.MustParse(defaultClaimSize)
	}
	return size
}
