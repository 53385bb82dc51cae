package doctor

import (
	"testing"

	"github.com/c9s-lab/c9s/pkg/rights"
)

func TestCheckRights(t *testing.T) {
	deploy := func(verb, group, resource string) rights.Right {
		return rights.Right{Command: "deploy", Required: true, Verb: verb, Group: group, Resource: resource}
	}
	exec := rights.Right{Command: "exec", Verb: "create", Resource: "pods", Subresource: "exec"}
	const name = "your rights"
	for title, c := range map[string]struct {
		missing []rights.Right
		want    []expect
		remedy  string
	}{
		"all":        {nil, []expect{{name, OK, "sufficient"}}, ""},
		"one":        {[]rights.Right{deploy("patch", "", "secrets")}, []expect{{name, Problem, "for deploy you may not: patch secrets"}}, "ask for the ClusterRole admin in the namespace"},
		"several":    {[]rights.Right{deploy("create", "apps", "deployments"), deploy("patch", "apps", "deployments")}, []expect{{name, Problem, "create, patch deployments.apps"}}, "ask for the ClusterRole admin in the namespace"},
		"controller": {[]rights.Right{deploy("patch", "rbac.authorization.k8s.io", "roles")}, []expect{{name, Problem, "roles"}}, "ask for the ClusterRole admin in the namespace; --no-controller avoids roles and rolebindings"},
		"only exec":  {[]rights.Right{exec}, []expect{{name, Warning, "for exec you may not: create pods/exec"}}, "ask for the ClusterRole admin in the namespace"},
		"both":       {[]rights.Right{exec, deploy("patch", "", "secrets")}, []expect{{name, Problem, "secrets"}, {name, Warning, "pods/exec"}}, "ask for the ClusterRole admin in the namespace"},
		"namespaces": {[]rights.Right{{Command: "deploy", Required: true, Verb: "create", Resource: "namespaces", Cluster: true}}, []expect{{name, Problem, "create namespaces"}},
			"ask for the ClusterRole admin in the namespace, or use -n with an existing namespace"},
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
