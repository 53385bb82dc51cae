package render

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
)

// expiry returns what a lab that expires has: the ConfigMap that is to own its other objects,
// and the controller's right to delete that.
func (b *labBuilder) expiry() []apiObject {
	if b.index.opts.Expires.IsZero() {
		return nil
	}
	cm := b.labConfigMap(contract.ExpiryConfigMap, contract.ComponentLab, nil)
	cm.Annotations[contract.AnnotationExpires] = contract.FormatExpiry(b.index.opts.Expires)
	role := &rbacv1.Role{
		TypeMeta:   typeMeta("rbac.authorization.k8s.io/v1", "Role"),
		ObjectMeta: b.index.labMeta(contract.ExpiryConfigMap, contract.ComponentController),
		Rules:      []rbacv1.PolicyRule{rights.Expiry().PolicyRule},
	}
	binding := b.controllerRoleBinding()
	binding.ObjectMeta = b.index.labMeta(contract.ExpiryConfigMap, contract.ComponentController)
	binding.RoleRef.Name = contract.ExpiryConfigMap
	return []apiObject{cm, role, binding}
}
