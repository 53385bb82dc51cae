package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// podSecurity is the label of a namespace with the level that it enforces (Pod
// Security admission).
const podSecurity = "pod-security.kubernetes.io/enforce"

func checkNamespace(f Facts, n Needs) []Check {
	c := Check{Name: "namespace", Result: OK}
	ns := f.Namespace
	switch {
	case f.NamespaceErr != nil:
		c.Result, c.Found = Warning, fmt.Sprintf("%s cannot be read: %v", f.NamespaceName, f.NamespaceErr)
		c.Remedy = "use -n with an existing namespace that you can access"
	case ns == nil:
		c.Found = f.NamespaceName + " does not exist yet; deploy creates it"
	case ns.Status.Phase == corev1.NamespaceTerminating:
		c.Result, c.Found, c.Remedy = Problem, f.NamespaceName+" is being deleted", "wait until it has been deleted"
	case ns.Labels[podSecurity] != "" && ns.Labels[podSecurity] != "privileged":
		c.Result = Problem
		c.Found = fmt.Sprintf("%s forbids privileged Pods (label %s=%s), but the sidecar must be privileged", ns.Name, podSecurity, ns.Labels[podSecurity])
		c.Remedy = "use another namespace with -n, or set the label to privileged"
	case n.Lab != "" && ns.Annotations[contract.AnnotationLabName] != "" && ns.Annotations[contract.AnnotationLabName] != n.Lab:
		c.Result = Problem
		c.Found = fmt.Sprintf("%s contains the lab %q", ns.Name, ns.Annotations[contract.AnnotationLabName])
		c.Remedy = "use another namespace with -n; a namespace can contain only one lab"
	default:
		c.Found = ns.Name + " allows privileged Pods"
		if ns.Labels[podSecurity] == "" {
			c.Found = ns.Name + " enforces no Pod Security level of its own"
		}
	}
	return []Check{c}
}

const letServiceAccount = "'oc adm policy add-scc-to-user privileged -z c9s-node' in the lab's namespace grants its Pods the privileged SCC"

// checkAdmission reads the answer to the dry-run, which has all of admission in it:
// Pod Security's default, policy engines, quota.
func checkAdmission(f Facts, _ Needs) []Check {
	c := Check{Name: "privileged Pods", Result: OK, Found: "the API server admits them (dry-run in namespace " + f.Admission.Namespace + ")"}
	err := f.Admission.Err
	if err == nil {
		// Security context constraints are those of the user here, and of the
		// ServiceAccount when the lab's Pods are made.
		if slices.Contains(f.Groups, "security.openshift.io") {
			c.Result, c.Found, c.Remedy = Warning, c.Found+"; OpenShift also checks the lab's ServiceAccount", letServiceAccount
		}
		return []Check{c}
	}
	c.Result, c.Found = Problem, err.Error()
	elsewhere := f.Admission.Namespace != f.NamespaceName
	switch text := err.Error(); {
	case strings.Contains(text, "violates PodSecurity") && elsewhere:
		// The namespace that a deploy makes has a label of its own.
		c.Result, c.Found = OK, fmt.Sprintf("namespace %s forbids them; deploy creates its namespace with the Pod Security level privileged", f.Admission.Namespace)
	case strings.Contains(text, "violates PodSecurity"):
		c.Remedy = "set the namespace's label " + podSecurity + "=privileged, or use another namespace with -n"
	case strings.Contains(text, "security context constraint"):
		c.Remedy = letServiceAccount
	case strings.Contains(text, "must specify"):
		c.Remedy = "use another namespace with -n, or give this one a LimitRange with defaults: c9s' own containers have few limits"
	case strings.Contains(text, "exceeded quota"):
		c.Remedy = "raise the namespace's quota, or use another namespace with -n"
	case strings.Contains(text, "admission webhook"), strings.Contains(text, "ValidatingAdmissionPolicy"):
		c.Remedy = "ask the owner of that policy for an exception for the lab's namespace"
	case strings.Contains(text, "cannot create resource"):
		c.Result, c.Remedy = Warning, "the check requires the right to create Pods; deploy does not"
	default:
		c.Remedy = "the sidecar must be privileged to create interfaces"
	}
	if elsewhere && c.Result == Problem {
		c.Result, c.Found = Warning, "in namespace "+f.Admission.Namespace+": "+c.Found
	}
	return []Check{c}
}

// checkNear reports that Pods may not mount the worker's folder by which links within a
// worker are joined in its kernel.
func checkNear(f Facts, n Needs) []Check {
	if f.Admission.Near == nil {
		return nil
	}
	return []Check{{
		Name: "folder of the worker", Result: n.needed(n.Lab != ""),
		Found:  fmt.Sprintf("Pods that mount %s are rejected: %v", contract.NearFolder, f.Admission.Near),
		Remedy: "set wires: {local: false} in c9s.yaml: links within a worker then use udp or vxlan; or ask the owner of that policy for an exception",
	}}
}
