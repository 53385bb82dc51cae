package rights

import (
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// authorizer is an API server that lists some rules, and allows also what may says.
func authorizer(rules []authorizationv1.ResourceRule, may func(authorizationv1.ResourceAttributes) bool) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectrulesreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectRulesReview)
		review.Status.ResourceRules = rules
		return true, review, nil
	})
	client.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = may(*review.Spec.ResourceAttributes)
		return true, review, nil
	})
	return client
}

func TestMissing(t *testing.T) {
	rule := func(verbs, groups, resources, names []string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{Verbs: verbs, APIGroups: groups, Resources: resources, ResourceNames: names}
	}
	all := []string{"*"}
	never := func(authorizationv1.ResourceAttributes) bool { return false }
	wanted := Of([]string{"Secret", "Role"}, []rbacv1.PolicyRule{
		{APIGroups: []string{"example.dev"}, Resources: []string{"things"}, Verbs: []string{"update"}, ResourceNames: []string{"c9s-controller"}},
	}, true)
	ordinary := []authorizationv1.ResourceRule{
		rule([]string{"get", "create", "patch", "list", "delete", "update", "watch"}, []string{"", "apps", "rbac.authorization.k8s.io", "coordination.k8s.io"},
			[]string{"secrets", "roles", "configmaps", "deployments", "services", "replicasets", "leases"}, nil),
		rule([]string{"get", "list", "watch", "patch", "delete", "deletecollection"}, []string{""}, []string{"pods", "events", "*/status"}, nil),
		rule(all, []string{""}, []string{"pods/exec", "pods/attach", "*/proxy", "pods/log"}, nil),
	}
	for name, c := range map[string]struct {
		rules []authorizationv1.ResourceRule
		may   func(authorizationv1.ResourceAttributes) bool
		want  string
		asked int // one by one
	}{
		// A rule says nothing of what is of no namespace.
		"administrator, by rules": {[]authorizationv1.ResourceRule{rule(all, all, all, nil)}, func(a authorizationv1.ResourceAttributes) bool {
			return a.Resource == "namespaces" && a.Namespace == ""
		}, "", 2},
		// By a webhook, say: it gives no rights that could be given away, but to escalate.
		"everything, not by rules": {nil, func(authorizationv1.ResourceAttributes) bool { return true }, "", len(wanted) - 1 + 2},
		"nearly everything, not by rules": {nil, func(a authorizationv1.ResourceAttributes) bool { return a.Verb != "escalate" },
			"update things.example.dev c9s-controller", len(wanted) - 1 + 2},
		"one namespace by its name": {append([]authorizationv1.ResourceRule{rule(all, []string{"example.dev"}, []string{"things"}, nil)}, ordinary...),
			func(a authorizationv1.ResourceAttributes) bool {
				return a.Verb == "create" || a.Name == "demo" && a.Namespace == ""
			}, "", 2},
		"all but what the Role gives": {ordinary, func(a authorizationv1.ResourceAttributes) bool { return a.Resource == "namespaces" },
			"update things.example.dev c9s-controller", 4},
		"let go beyond": {ordinary, func(a authorizationv1.ResourceAttributes) bool {
			return a.Resource == "namespaces" || a.Verb == "escalate" || a.Verb == "bind"
		}, "", 4},
		"beyond, but not bound": {ordinary, func(a authorizationv1.ResourceAttributes) bool {
			return a.Resource == "namespaces" || a.Verb == "escalate"
		}, "update things.example.dev c9s-controller", 4},
		"an object by its name": {append([]authorizationv1.ResourceRule{rule([]string{"update"}, []string{"example.dev"}, []string{"things"}, []string{"c9s-controller"})}, ordinary...),
			never, "create, patch namespaces", 2},
		"another object": {append([]authorizationv1.ResourceRule{rule([]string{"update"}, []string{"example.dev"}, []string{"things"}, []string{"other"})}, ordinary...),
			never, "create, patch namespaces; update things.example.dev c9s-controller", 4},
		"no logs, some secrets": {[]authorizationv1.ResourceRule{
			rule(all, all, []string{"roles", "configmaps", "deployments", "services", "replicasets", "leases", "pods", "events", "*/exec", "pods/attach", "*/proxy", "*/status", "things"}, nil),
			rule(all, all, []string{"secrets"}, []string{"c9s-wire-key"}),
		}, never, "create, patch namespaces; get pods/log; list, create, patch, delete secrets", 7},
	} {
		t.Run(name, func(t *testing.T) {
			client := authorizer(c.rules, c.may)
			got, err := Missing(t.Context(), ReviewsOf(client.AuthorizationV1()), "demo", wanted)
			if err != nil {
				t.Fatal(err)
			}
			if text := Describe(got); text != c.want {
				t.Errorf("missing %q, want %q", text, c.want)
			}
			asked := -1 // the rules
			for _, a := range client.Actions() {
				if a.GetVerb() == "create" {
					asked++
				}
			}
			if asked != c.asked {
				t.Errorf("%d rights asked one by one, want %d", asked, c.asked)
			}
		})
	}
}

func TestMissingFails(t *testing.T) {
	broken := errors.New("no answer")
	for resource, want := range map[string]error{"selfsubjectrulesreviews": nil, "selfsubjectaccessreviews": broken} {
		client := authorizer(nil, func(authorizationv1.ResourceAttributes) bool { return true })
		client.PrependReactor("create", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, broken })
		if got, err := Missing(t.Context(), ReviewsOf(client.AuthorizationV1()), "demo", Of([]string{"Secret"}, nil, false)); !errors.Is(err, want) || len(got) > 0 {
			t.Errorf("%s: %v, %v", resource, got, err)
		}
	}
}
