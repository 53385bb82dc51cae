package rights

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRights(t *testing.T) {
	kinds, rules := []string{"Deployment", "Secret"}, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"patch"}, ResourceNames: []string{"c9s-ca"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"update"}, ResourceNames: []string{"c9s-controller"}},
	}
	got := Of(kinds, rules, false)
	seen := map[string]int{}
	for _, r := range got {
		seen[r.Verb+" "+r.object()]++
	}
	for text, count := range map[string]int{
		"patch deployments.apps":            1,
		"delete secrets":                    1,
		"create pods/exec":                  1,
		"get pods/log":                      1,
		"get pods/proxy":                    1,
		"get pods":                          1, // given to the controller
		"update leases.coordination.k8s.io": 1, // one client at a time
		"list pods":                         1, // asked once, though two need it
		"patch secrets c9s-ca":              0, // in "patch secrets"
		"update leases.coordination.k8s.io c9s-controller": 0, // in the one above
		"create namespaces": 0,
		"patch services":    0, // none is rendered
	} {
		if seen[text] != count {
			t.Errorf("%s: %d times, want %d", text, seen[text], count)
		}
	}
	made := Of(kinds, rules, true)
	i := slices.IndexFunc(made, func(r Right) bool { return r.Resource == "namespaces" && r.Verb == "create" })
	if i < 0 {
		t.Fatal("a new namespace needs no right")
	}
	if review := made[i].review("demo"); review.Spec.ResourceAttributes.Namespace != "" {
		t.Errorf("namespaces are asked for in namespace %q", review.Spec.ResourceAttributes.Namespace)
	}
}
