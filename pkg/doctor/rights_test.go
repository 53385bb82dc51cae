package doctor

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRights(t *testing.T) {
	n := Needs{Kinds: []string{"Deployment", "Secret"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"patch"}, ResourceNames: []string{"c9s-ca"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"update"}, ResourceNames: []string{"c9s-controller"}},
	}}
	got := Rights(n, false)
	seen := map[string]int{}
	for _, r := range got {
		seen[r.Verb+" "+r.object()]++
	}
	for text, count := range map[string]int{
		"patch deployments.apps": 1,
		"delete secrets":         1,
		"create pods/exec":       1,
		"get pods/log":           1,
		"get pods/proxy":         1,
		"get pods":               1, // given to the controller
		"list pods":              1, // asked once, though two need it
		"patch secrets c9s-ca":   0, // in "patch secrets"
		"update leases.coordination.k8s.io c9s-controller": 1,
		"create namespaces": 0,
		"patch services":    0, // none is rendered
	} {
		if seen[text] != count {
			t.Errorf("%s: %d times, want %d", text, seen[text], count)
		}
	}
	made := Rights(n, true)
	i := slices.IndexFunc(made, func(r Right) bool { return r.Resource == "namespaces" && r.Verb == "create" })
	if i < 0 {
		t.Fatal("a new namespace needs no right")
	}
	if review := made[i].Review("demo"); review.Spec.ResourceAttributes.Namespace != "" {
		t.Errorf("namespaces are asked for in namespace %q", review.Spec.ResourceAttributes.Namespace)
	}
}

func TestCheckRights(t *testing.T) {
	deploy := func(verb, group, resource string) Right {
		return Right{Command: "deploy", Required: true, Verb: verb, Group: group, Resource: resource}
	}
	exec := Right{Command: "exec", Verb: "create", Resource: "pods", Subresource: "exec"}
	const name = "your rights"
	for title, c := range map[string]struct {
		missing []Right
		want    []expect
		remedy  string
	}{
		"all":        {nil, []expect{{name, OK, "enough"}}, ""},
		"one":        {[]Right{deploy("patch", "", "secrets")}, []expect{{name, Problem, "for deploy you may not: patch secrets"}}, "ask for the ClusterRole admin in the namespace"},
		"several":    {[]Right{deploy("create", "apps", "deployments"), deploy("patch", "apps", "deployments")}, []expect{{name, Problem, "create, patch deployments.apps"}}, "ask for the ClusterRole admin in the namespace"},
		"controller": {[]Right{deploy("patch", "rbac.authorization.k8s.io", "roles")}, []expect{{name, Problem, "roles"}}, "ask for the ClusterRole admin in the namespace; --no-controller does without roles and rolebindings"},
		"only exec":  {[]Right{exec}, []expect{{name, Warning, "for exec you may not: create pods/exec"}}, "ask for the ClusterRole admin in the namespace"},
		"both":       {[]Right{exec, deploy("patch", "", "secrets")}, []expect{{name, Problem, "secrets"}, {name, Warning, "pods/exec"}}, "ask for the ClusterRole admin in the namespace"},
		"namespaces": {[]Right{{Command: "deploy", Required: true, Verb: "create", Resource: "namespaces", Cluster: true}}, []expect{{name, Problem, "create namespaces"}},
			"ask for the ClusterRole admin in the namespace, or for a namespace that is there already and name it with -n"},
	} {
		f := good()
		f.Missing = c.missing
		t.Run(title, func(t *testing.T) {
			got := checkRights(f, Any())
			demand(t, got, c.want)
			if len(got) > 0 && got[0].Remedy != c.remedy {
				t.Errorf("remedy %q, want %q", got[0].Remedy, c.remedy)
			}
		})
	}
	f := good()
	f.RightsErr = errForbidden
	demand(t, checkRights(f, Any()), []expect{{name, Warning, "cannot be read"}})
}
