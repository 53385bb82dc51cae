//go:build !nocluster

package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/rights"
)

// TestRightsPage makes the page of the rights that c9s needs and gives.
func TestRightsPage(t *testing.T) {
	var rules []rbacv1.PolicyRule
	for _, rule := range rights.Controller() {
		rules = append(rules, rule.PolicyRule)
	}
	kinds := slices.Sorted(maps.Keys(rights.Resources))
	all := rights.All(kinds, rules, false)

	var b strings.Builder
	b.WriteString("# Rights\n\n" + generated)
	b.WriteString("The RBAC rules of the controller, and those that each command of c9s needs. All rights are limited to the lab's\nnamespace.\n")
	b.WriteString("\n## The controller\n\nThe ServiceAccount `c9s-controller` of a lab has a Role with only these rules. The ServiceAccount `c9s-node` of\nthe nodes has none, and no Pod mounts its token.\n\n")
	b.WriteString("| right | purpose | worst that a holder of the token can do |\n|---|---|---|\n")
	for _, rule := range rights.Controller() {
		what := strings.Join(rule.Verbs, ", ") + " " + strings.Join(rule.Resources, ", ")
		if rule.APIGroups[0] != "" {
			what += "." + rule.APIGroups[0]
		}
		if len(rule.ResourceNames) > 0 {
			what += " " + strings.Join(rule.ResourceNames, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", what, cell(rule.Use), cell(rule.Worst))
	}
	expiry := rights.Expiry()
	fmt.Fprintf(&b, "\nFor a lab that expires (`deploy --ttl`), the Role `%s` adds one rule: %s %s %s, to %s. The worst that a holder of the token can do with it: %s.\n",
		contract.ExpiryConfigMap, strings.Join(expiry.Verbs, ", "), strings.Join(expiry.Resources, ", "), strings.Join(expiry.ResourceNames, ", "), expiry.Use, expiry.Worst)
	b.WriteString("\n## The commands\n\n`redeploy` lists what deploy needs in addition for a lab that exists. `deploy` includes the rights of the controller,\nbecause Kubernetes does not let you grant rights that you lack; `--no-controller` avoids this. To create a namespace,\n`deploy` needs create and patch of namespaces. `c9s doctor` reports which rights you lack.\n`restore` and `clone` need no rights; `clone --deploy` needs those of `deploy`. `destroy --all` also needs to list configmaps\nin all namespaces, unless you name one.\n\n")
	b.WriteString("| command | rights |\n|---|---|\n")
	for _, command := range rights.Commands {
		own := slices.DeleteFunc(slices.Clone(all), func(r rights.Right) bool { return r.Command != command })
		fmt.Fprintf(&b, "| %s | %s |\n", command, cell(strings.ReplaceAll(rights.Describe(own), "; ", "<br>")))
	}
	b.WriteString("\nThese rights are optional. Without them, commands report less or wait longer: get namespaces, list nodes, list and watch\nevents, patch pods/status (link changes then reach running Pods after a minute or two).\n\nEvents of workers in a scenario (`c9s run`) need list and patch of nodes.\n")
	b.WriteString("\n## A Role for a user\n\nA user with only this Role in a namespace can deploy, use and destroy a lab there. The namespace must allow\nprivileged Pods (`pod-security.kubernetes.io/enforce: privileged`, if the cluster's default is another level).\n\n```yaml\n")
	role := rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: "c9s-user"}, Rules: roleOf(rights.Of(kinds, rules, false))}
	text, err := yaml.Marshal(role)
	if err != nil {
		t.Fatal(err)
	}
	b.Write(text)
	b.WriteString("```\n")
	checkDoc(t, "rights.md", b.String())
}

// roleOf returns the fewest rules that cover some rights of one namespace.
func roleOf(list []rights.Right) []rbacv1.PolicyRule {
	type object struct{ group, resource, name string }
	verbs := map[object][]string{}
	for _, r := range list {
		if r.Cluster {
			continue
		}
		o := object{r.Group, r.Resource, r.Name}
		if r.Subresource != "" {
			o.resource += "/" + r.Subresource
		}
		if !slices.Contains(verbs[o], r.Verb) {
			verbs[o] = append(verbs[o], r.Verb)
		}
	}
	type set struct{ group, name, verbs string }
	resources := map[set][]string{}
	for o, v := range verbs {
		slices.Sort(v)
		s := set{o.group, o.name, strings.Join(v, ",")}
		resources[s] = append(resources[s], o.resource)
	}
	var out []rbacv1.PolicyRule
	for s, r := range resources {
		slices.Sort(r)
		rule := rbacv1.PolicyRule{APIGroups: []string{s.group}, Resources: r, Verbs: strings.Split(s.verbs, ",")}
		if s.name != "" {
			rule.ResourceNames = []string{s.name}
		}
		out = append(out, rule)
	}
	slices.SortFunc(out, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(strings.Compare(a.APIGroups[0], b.APIGroups[0]), slices.Compare(a.Resources, b.Resources), slices.Compare(a.ResourceNames, b.ResourceNames))
	})
	return out
}

// The Role has each right, in as few rules as there are sets of verbs.
func TestRole(t *testing.T) {
	got := roleOf([]rights.Right{
		{Verb: "list", Resource: "pods"}, {Verb: "get", Resource: "pods", Subresource: "log"}, {Verb: "list", Resource: "services"}, {Verb: "list", Resource: "pods"},
		{Verb: "create", Resource: "namespaces", Cluster: true}, {Verb: "get", Resource: "configmaps", Name: "a"}, {Verb: "patch", Group: "apps", Resource: "deployments"},
	})
	var text []string
	for _, r := range got {
		text = append(text, fmt.Sprint(r.APIGroups, r.Resources, r.ResourceNames, r.Verbs))
	}
	want := "[] [configmaps] [a] [get]; [] [pods services] [] [list]; [] [pods/log] [] [get]; [apps] [deployments] [] [patch]"
	if s := strings.Join(text, "; "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}
