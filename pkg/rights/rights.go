// Package rights knows what c9s' commands do in a cluster, as RBAC names it, and asks
// the API server which of it a user may not.
package rights

import (
	"cmp"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resources are the API resources of the kinds that render makes, except the
// Namespace.
var Resources = map[string]schema.GroupVersionResource{
	"ConfigMap":             {Version: "v1", Resource: "configmaps"},
	"Secret":                {Version: "v1", Resource: "secrets"},
	"Service":               {Version: "v1", Resource: "services"},
	"ServiceAccount":        {Version: "v1", Resource: "serviceaccounts"},
	"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"},
	"Deployment":            {Group: "apps", Version: "v1", Resource: "deployments"},
	"NetworkPolicy":         {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"Role":                  {Group: rbacv1.GroupName, Version: "v1", Resource: "roles"},
	"RoleBinding":           {Group: rbacv1.GroupName, Version: "v1", Resource: "rolebindings"},
}

// Commands that need rights of their own, in the order of the documentation.
const (
	Deploy   = "deploy"
	Redeploy = "redeploy" // deploy of a lab that exists: it prunes and restarts
	Status   = "status"   // and labs, inspect, graph, top
	Exec     = "exec"     // and shell, cp
	Inspect  = "inspect"  // interfaces, and --details
	Events   = "events"
	Shim     = "shim" // docker's exec, logs, cp, ps and inspect
	Save     = "save"
	Reset    = "reset"
	Snapshot = "snapshot"
	Link     = "link"
	Capture  = "capture"
	Test     = "test"
	Run      = "run"
	SSH      = "ssh"     // and all others that connect to nodes: dial, forward, proxy, ...
	Console  = "console" // of a node that is no virtual machine
	Logs     = "logs"
	Restart  = "restart" // and stop, start, pause, resume
	Extend   = "extend"
	Pools    = "pools"
	Support  = "support"
	Destroy  = "destroy"
)

// Commands are all commands that need rights, in the order of the documentation.
var Commands = []string{Deploy, Redeploy, Status, Exec, Inspect, Events, Shim, Save, Reset, Snapshot, Link, Test, Run, Capture, SSH, Console, Logs, Restart, Extend, Pools, Support, Destroy}

// Right is one thing that a command does, as RBAC names it.
type Right struct {
	// Command is the command that needs it.
	Command string
	// Required reports whether a lab does not get running without it.
	Required                           bool
	Verb, Group, Resource, Subresource string
	Name                               string
	// Cluster reports whether it is not of one namespace.
	Cluster bool
	// given reports whether a Role of the lab has it: who makes a Role must have what is
	// in it, or be let go beyond (Kubernetes' RBAC reference, privilege escalation
	// prevention).
	given bool
}

// resources of which commands use more than what an apply does.
var (
	pods        = schema.GroupResource{Resource: "pods"}
	events      = schema.GroupResource{Resource: "events"}
	leases      = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	replicaSets = schema.GroupResource{Group: "apps", Resource: "replicasets"}
	configMaps  = Resources["ConfigMap"].GroupResource()
	deployments = Resources["Deployment"].GroupResource()
	services    = Resources["Service"].GroupResource()
)

// Of are the rights that the commands need for a lab whose objects are of some kinds,
// and whose Roles have some rules. newNamespace reports whether the lab's namespace is
// still to be made. Each right is there once, for the first command that needs it.
func Of(kinds []string, rules []rbacv1.PolicyRule, newNamespace bool) []Right {
	return unique(All(kinds, rules, newNamespace))
}

// All is Of with each right of each command.
func All(kinds []string, rules []rbacv1.PolicyRule, newNamespace bool) []Right {
	var out []Right
	add := func(command string, r schema.GroupResource, sub string, verbs ...string) {
		for _, verb := range verbs {
			out = append(out, Right{Command: command, Required: command == Deploy, Verb: verb, Group: r.Group, Resource: r.Resource, Subresource: sub})
		}
	}
	for _, kind := range kinds {
		if r, ok := Resources[kind]; ok {
			add(Deploy, r.GroupResource(), "", "list", "create", "patch")
			add(Redeploy, r.GroupResource(), "", "delete")
			add(Destroy, r.GroupResource(), "", "list", "delete")
		}
	}
	if newNamespace {
		for _, verb := range []string{"create", "patch"} {
			out = append(out, Right{Command: Deploy, Required: true, Verb: verb, Resource: "namespaces", Cluster: true})
		}
	}
	for _, command := range []string{Deploy, Destroy} { // one client at a time
		add(command, leases, "", "get", "create", "update", "delete")
	}
	add(Deploy, configMaps, "", "get", "list")
	add(Deploy, pods, "", "list", "watch")
	add(Deploy, deployments, "", "list", "watch")
	add(Redeploy, pods, "", "deletecollection")
	for _, command := range []string{Status, Exec, Inspect, Events, Shim, Save, Reset, Snapshot, Link, Test, Run, Capture, SSH, Console, Logs, Restart, Extend, Pools, Support} { // they find the lab and its nodes
		add(command, configMaps, "", "list")
		add(command, deployments, "", "list")
		add(command, pods, "", "list")
	}
	add(Status, configMaps, "", "get")
	add(Status, services, "", "list")
	add(Status, events, "", "list")
	add(Status, pods, "proxy", "get")
	add(Exec, pods, "", "get")
	add(Exec, pods, "exec", "create")
	add(Inspect, configMaps, "", "get")
	add(Inspect, pods, "exec", "create")
	add(Events, configMaps, "", "get")
	add(Events, pods, "", "watch")
	add(Events, pods, "exec", "create")
	add(Shim, configMaps, "", "get")
	add(Shim, pods, "", "get")
	add(Shim, pods, "exec", "create")
	add(Shim, pods, "log", "get")
	for _, command := range []string{Save, Reset, Snapshot} {
		add(command, configMaps, "", "get")
		add(command, pods, "", "get")
		add(command, pods, "exec", "create")
	}
	add(Reset, deployments, "", "get", "watch", "patch")
	add(Reset, pods, "", "watch", "deletecollection")
	add(Link, configMaps, "", "get", "update")
	add(Link, pods, "status", "patch")
	add(Capture, configMaps, "", "get")
	add(Capture, pods, "exec", "create")
	add(Test, configMaps, "", "get", "update") // update for a check of convergence
	add(Test, pods, "", "get")
	add(Test, pods, "exec", "create")
	add(Test, pods, "status", "patch")
	add(Run, configMaps, "", "get", "update")
	add(Run, pods, "", "get", "watch", "deletecollection")
	add(Run, pods, "exec", "create")
	add(Run, pods, "status", "patch")
	add(Run, deployments, "", "get", "watch", "patch")
	add(SSH, configMaps, "", "get")
	add(SSH, pods, "exec", "create")
	add(Console, pods, "attach", "create")
	add(Logs, pods, "log", "get")
	add(Restart, deployments, "", "get", "watch", "patch")
	add(Restart, pods, "", "watch", "deletecollection")
	add(Support, configMaps, "", "get")
	add(Support, services, "", "list")
	add(Support, events, "", "list")
	add(Support, pods, "log", "get")
	add(Support, pods, "proxy", "get")
	add(Extend, configMaps, "", "patch")
	add(Pools, configMaps, "", "update") // with --free
	add(Destroy, configMaps, "", "get")
	add(Destroy, pods, "", "list", "delete")
	add(Destroy, replicaSets, "", "list", "delete")
	// Without these a command says less, and does the same.
	add("deploy, to explain failures", events, "", "list", "watch")
	add("deploy, to finish sooner", pods, "status", "patch") // the kubelet updates volumes at once
	for _, rule := range rules {
		out = append(out, granted(rule)...)
	}
	return out
}

// GetByName is the right to read one object that a deploy looks for and does not make.
func GetByName(kind, name string) Right {
	r := Resources[kind]
	return Right{Command: Deploy, Required: true, Verb: "get", Group: r.Group, Resource: r.Resource, Name: name}
}

func granted(rule rbacv1.PolicyRule) []Right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var out []Right
	for _, group := range rule.APIGroups {
		for _, full := range rule.Resources {
			resource, sub, _ := strings.Cut(full, "/")
			for _, name := range names {
				for _, verb := range rule.Verbs {
					out = append(out, Right{Command: Deploy, Required: true, Verb: verb, Group: group, Resource: resource, Subresource: sub, Name: name, given: true})
				}
			}
		}
	}
	return out
}

// unique omits what is asked twice, and what a right to all objects has in it. A
// right that is required stays so.
func unique(rights []Right) []Right {
	key := func(r Right, name string) Right {
		return Right{Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Name: name}
	}
	all, seen := map[Right]bool{}, map[Right]bool{}
	for _, r := range rights {
		all[key(r, r.Name)] = true
	}
	slices.SortStableFunc(rights, func(a, b Right) int { return cmp.Compare(rank(a), rank(b)) })
	return slices.DeleteFunc(rights, func(r Right) bool {
		k := key(r, r.Name)
		if seen[k] || r.Name != "" && all[key(r, "")] {
			return true
		}
		seen[k] = true
		return false
	})
}

func rank(r Right) int {
	switch {
	case r.Required && !r.given:
		return 0
	case r.Required:
		return 1
	}
	return 2
}

// review asks the API server about a right in a namespace.
func (r Right) review(namespace string) *authorizationv1.SelfSubjectAccessReview {
	name := r.Name
	if r.Cluster {
		if r.Verb != "create" { // of the namespace itself, which may be the only one
			name = namespace
		}
		namespace = ""
	}
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Name: name,
		},
	}}
}

// in reports whether a rule has the right (its verbs, groups, resources and names; Kubernetes
// API, ResourceRule).
func (r Right) in(rule authorizationv1.ResourceRule) bool {
	has := func(list []string, words ...string) bool {
		return slices.Contains(list, "*") || slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
	}
	resources := []string{r.Resource}
	if r.Subresource != "" {
		resources = []string{r.Resource + "/" + r.Subresource, "*/" + r.Subresource}
	}
	named := len(rule.ResourceNames) == 0 || r.Name != "" && slices.Contains(rule.ResourceNames, r.Name)
	return has(rule.Verbs, r.Verb) && has(rule.APIGroups, r.Group) && has(rule.Resources, resources...) && named
}

// object is what the right is to, as kubectl writes it: pods/exec, roles.rbac.authorization.k8s.io.
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

// Describe lists rights grouped by resource: "create, patch secrets; list pods".
func Describe(list []Right) string {
	verbs := map[string][]string{}
	for _, r := range list {
		if o := r.object(); !slices.Contains(verbs[o], r.Verb) {
			verbs[o] = append(verbs[o], r.Verb)
		}
	}
	var parts []string
	for object, v := range verbs {
		parts = append(parts, strings.Join(v, ", ")+" "+object)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// Remedy is how a user gets rights.
func Remedy(list []Right) string {
	text := "ask for the ClusterRole admin in the namespace"
	if slices.ContainsFunc(list, beyondAdmin) {
		text += " and for patch pods/status, which the controller's Role has and admin lacks (docs/reference/rights.md has a complete Role)"
	}
	if slices.ContainsFunc(list, func(r Right) bool { return r.Cluster }) {
		text += ", or use -n with an existing namespace"
	}
	if slices.ContainsFunc(list, func(r Right) bool {
		return r.Required && (r.given || r.Group == rbacv1.GroupName)
	}) {
		text += "; --no-controller avoids roles and rolebindings"
	}
	return text
}

// beyondAdmin reports whether Kubernetes' ClusterRole admin lacks a right.
func beyondAdmin(r Right) bool { return r.Resource == "pods" && r.Subresource == "status" }
