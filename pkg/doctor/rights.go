package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// Right is one thing that a command does, as RBAC names it.
type Right struct {
	// Command is who needs it: deploy, status, exec, logs, shell.
	Command string
	// Required tells that a lab does not get running without it.
	Required                           bool
	Verb, Group, Resource, Subresource string
	Name                               string
	// Cluster tells that it is not of one namespace.
	Cluster bool
}

// resources are the API resources of the kinds that render makes.
var resources = map[string]struct{ group, resource string }{
	"ConfigMap": {"", "configmaps"}, "Secret": {"", "secrets"}, "Service": {"", "services"}, "ServiceAccount": {"", "serviceaccounts"},
	"PersistentVolumeClaim": {"", "persistentvolumeclaims"}, "Deployment": {"apps", "deployments"}, "NetworkPolicy": {"networking.k8s.io", "networkpolicies"},
	"Role": {"rbac.authorization.k8s.io", "roles"}, "RoleBinding": {"rbac.authorization.k8s.io", "rolebindings"},
}

// Rights are those that the commands need. newNamespace tells that the lab's
// namespace is still to be made.
func Rights(n Needs, newNamespace bool) []Right {
	var out []Right
	add := func(command string, required bool, group, resource, sub string, verbs ...string) {
		for _, verb := range verbs {
			out = append(out, Right{Command: command, Required: required, Verb: verb, Group: group, Resource: resource, Subresource: sub})
		}
	}
	for _, kind := range n.Kinds {
		if r, ok := resources[kind]; ok {
			add("deploy", true, r.group, r.resource, "", "get", "list", "create", "patch", "delete")
		}
	}
	if newNamespace {
		for _, verb := range []string{"create", "patch"} {
			out = append(out, Right{Command: "deploy", Required: true, Verb: verb, Resource: "namespaces", Cluster: true})
		}
	}
	add("deploy", true, "", "pods", "", "list", "watch", "patch")
	add("deploy", true, "apps", "deployments", "", "watch")
	add("deploy", true, "", "events", "", "list", "watch")
	add("status", false, "", "pods", "proxy", "get")
	add("exec", false, "", "pods", "exec", "create")
	add("logs", false, "", "pods", "log", "get")
	add("restart", false, "", "pods", "", "deletecollection")
	// Who makes a Role must have what is in it (Kubernetes' RBAC reference,
	// privilege escalation prevention).
	for _, rule := range n.Rules {
		out = append(out, granted(rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames)...)
	}
	return unique(out)
}

func granted(verbs, groups, resources, names []string) []Right {
	if len(names) == 0 {
		names = []string{""}
	}
	var out []Right
	for _, group := range groups {
		for _, full := range resources {
			resource, sub, _ := strings.Cut(full, "/")
			for _, name := range names {
				for _, verb := range verbs {
					out = append(out, Right{Command: "deploy", Required: true, Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: name})
				}
			}
		}
	}
	return out
}

// unique leaves out what is asked twice, and what a right to all objects has in it.
func unique(rights []Right) []Right {
	seen := map[Right]bool{}
	key := func(r Right, name string) Right {
		return Right{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Name: name}
	}
	for _, r := range rights {
		if r.Name == "" {
			seen[key(r, "")] = false
		}
	}
	return slices.DeleteFunc(rights, func(r Right) bool {
		if _, all := seen[key(r, "")]; all && r.Name != "" {
			return true
		}
		k := key(r, r.Name)
		if seen[k] {
			return true
		}
		seen[k] = true
		return false
	})
}

// Review asks the API server about a right in a namespace.
func (r Right) Review(namespace string) *authorizationv1.SelfSubjectAccessReview {
	if r.Cluster {
		namespace = ""
	}
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Name: r.Name,
		},
	}}
}

func (r Right) object() string {
	text := r.Resource
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	return text
}

func checkRights(f Facts, _ Needs) []Check {
	const name = "your rights"
	if f.RightsErr != nil {
		return unread(name, f.RightsErr)
	}
	if len(f.Missing) == 0 {
		return []Check{{Name: name, Result: OK, Found: "they are enough for deploy, status, exec and logs"}}
	}
	var out []Check
	for _, required := range []bool{true, false} {
		missing := map[string][]string{}
		var commands []string
		controller := false
		for _, r := range f.Missing {
			if r.Required != required {
				continue
			}
			if !slices.Contains(missing[r.object()], r.Verb) {
				missing[r.object()] = append(missing[r.object()], r.Verb)
			}
			commands = append(commands, r.Command)
			controller = controller || r.Group == "rbac.authorization.k8s.io" || r.Group == "coordination.k8s.io"
		}
		if len(missing) == 0 {
			continue
		}
		slices.Sort(commands)
		c := Check{Name: name, Result: Problem,
			Found:  fmt.Sprintf("for %s you may not: %s", strings.Join(slices.Compact(commands), ", "), describe(missing)),
			Remedy: "ask for the ClusterRole admin in the namespace"}
		if !required {
			c.Result = Warning
		} else if slices.ContainsFunc(f.Missing, func(r Right) bool { return r.Cluster }) {
			c.Remedy += ", or for a namespace that is there already and name it with -n"
		}
		if controller {
			c.Remedy += "; --no-controller does without roles and rolebindings"
		}
		out = append(out, c)
	}
	return out
}

func describe(missing map[string][]string) string {
	var parts []string
	for object, verbs := range missing {
		parts = append(parts, strings.Join(verbs, ", ")+" "+object)
	}
	slices.SortFunc(parts, cmp.Compare)
	return strings.Join(parts, "; ")
}
