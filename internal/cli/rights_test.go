//go:build !nocluster

package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

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
	b.WriteString("What c9s may do in a cluster, and what its commands need, as Kubernetes' RBAC names it. All rights are of\nthe lab's namespace.\n")
	b.WriteString("\n## The controller\n\nThe ServiceAccount `c9s-controller` of a lab has a Role with these rules and no others. The ServiceAccount\n`c9s-node` of the lab's nodes has none, and its token is in no Pod.\n\n")
	b.WriteString("| right | what for | the worst that the holder of the token can do |\n|---|---|---|\n")
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
	b.WriteString("\n## The commands\n\n`redeploy` is a deploy of a lab that exists. `deploy` also needs what it gives to the controller, unless\n`--no-controller` is given: Kubernetes lets nobody give away more than they have. `c9s doctor` says which of these you\nlack. For a namespace that does not exist yet, `deploy` needs create and patch of namespaces.\n\n")
	b.WriteString("| command | rights |\n|---|---|\n")
	for _, command := range rights.Commands {
		own := slices.DeleteFunc(slices.Clone(all), func(r rights.Right) bool { return r.Command != command })
		fmt.Fprintf(&b, "| %s | %s |\n", command, cell(strings.ReplaceAll(rights.Describe(own), "; ", "<br>")))
	}
	b.WriteString("\nWithout these, a command says less, or waits longer, and does the same: get namespaces, list nodes, list and watch events,\npatch pods/status (changed links of running Pods then take a minute or two).\n")
	b.WriteString("\n## A Role for a user\n\nA user with this Role in a namespace, and no other right, deploys, uses and destroys a lab there. The namespace must\nallow privileged Pods (`pod-security.kubernetes.io/enforce: privileged`, if the cluster's default is another level).\n\n```yaml\n")
	role := rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: "c9s-user"}, Rules: rights.Role(rights.Of(kinds, rules, false))}
	text, err := yaml.Marshal(role)
	if err != nil {
		t.Fatal(err)
	}
	b.Write(text)
	b.WriteString("```\n")
	checkDoc(t, "rights.md", b.String())
}
