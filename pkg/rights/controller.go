package rights

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Rule is a rule of a Role, with what its holder uses it for and the worst that
// somebody with its holder's token can do with it.
type Rule struct {
	rbacv1.PolicyRule
	Use, Worst string
}

// Expiry is the rule of the controller of a lab that expires.
func Expiry() Rule {
	return Rule{
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{contract.ExpiryConfigMap}, Verbs: []string{"get", "delete"}},
		"remove the lab when it has expired: this object owns all others",
		"remove the lab at any time, with the data of its devices",
	}
}

// Controller are the rules of the controller's Role: what it uses and no more, which
// its own tests check. The API server cannot restrict "create" to a name.
func Controller() []Rule {
	own := []string{contract.StatusConfigMap, contract.AddressesConfigMap}
	read := append(own[:len(own):len(own)], contract.DirectoryConfigMap)
	for i := range contract.TopologyParts {
		read = append(read, contract.TopologyName(i))
	}
	core, leases := []string{""}, []string{"coordination.k8s.io"}
	return []Rule{
		{
			rbacv1.PolicyRule{APIGroups: core, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
			"follow the lab's Pods",
			"read the specification of every Pod of the namespace, with the values in its environment",
		},
		{
			rbacv1.PolicyRule{APIGroups: core, Resources: []string{"pods"}, Verbs: []string{"delete"}},
			"replace a Pod whose sidecar has lost its network namespace",
			"restart the lab, and every other Pod of the namespace. Nothing new runs: the Pods are recreated by their controllers",
		},
		{
			rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"list", "watch"}},
			"distinguish a stopped node from one that has no Pod yet",
			"read the specification of every Deployment of the namespace, with the values in its environment",
		},
		{
			rbacv1.PolicyRule{APIGroups: core, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
			"annotate a Pod whose links were edited or whose neighbour has moved, so that the kubelet updates its volumes at once",
			"report a Pod of the namespace as failed (its Deployment replaces it) or under another address, and change its labels, so that Services lose it. The API server ignores a change of its specification: no image, command or mount",
		},
		{
			rbacv1.PolicyRule{APIGroups: core, Resources: []string{"configmaps"}, ResourceNames: read, Verbs: []string{"get"}},
			"read the directory and the links, and what an earlier controller wrote",
			"read the names, links and addresses of the lab",
		},
		{
			rbacv1.PolicyRule{APIGroups: core, Resources: []string{"configmaps"}, ResourceNames: []string{contract.TopologyName(0)}, Verbs: []string{"list", "watch"}},
			"notice an edit of links at once",
			"read the links of the lab",
		},
		{
			rbacv1.PolicyRule{APIGroups: core, Resources: []string{"configmaps"}, ResourceNames: own, Verbs: []string{"patch"}},
			"write the status and the addresses of the Pods",
			"report a wrong state, and misdirect the hellos of the wire to addresses that lack the lab's key, so that links take longer to come up",
		},
		{
			rbacv1.PolicyRule{APIGroups: core, Resources: []string{"events"}, Verbs: []string{"create"}},
			"report nodes and links that fail",
			"write misleading Events in the namespace",
		},
		{
			rbacv1.PolicyRule{APIGroups: leases, Resources: []string{"leases"}, Verbs: []string{"create"}},
			"win the first election",
			"delay a program of the namespace that waits for a Lease which does not exist yet, such as a deploy, until the Lease expires",
		},
		{
			rbacv1.PolicyRule{APIGroups: leases, Resources: []string{"leases"}, ResourceNames: []string{contract.ControllerName}, Verbs: []string{"get", "update"}},
			"stay elected",
			"keep other controllers of the lab from being elected",
		},
	}
}
