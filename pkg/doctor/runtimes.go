package doctor

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Serves reports what a kind of worker supports.
type Serves string

// The answers of the matrix.
const (
	Yes     Serves = "yes"
	No      Serves = "no"
	Depends Serves = "depends" // on how it is set up
)

// Runtime is one row of the matrix: a kind of worker, how it is known, and what it
// serves.
type Runtime struct {
	Name string
	// Labels, Taints and Annotations are KEY or KEY=VALUE, ProviderIDs and Names
	// are prefixes: one that a worker has is enough.
	Labels, Taints, Annotations, ProviderIDs, Names []string
	// Privileged are the sidecar's Pods; Exec and Logs those commands, and Proxy
	// the way with which c9s status asks Pods where there is no controller.
	Privileged, Exec, Logs, Proxy Serves
	// Note is for people.
	Note string
}

// runtimes is the matrix; the first row that meets a worker is its own, so the
// special come before the general. A worker that none meets is an ordinary kubelet.
var runtimes = []Runtime{
	{
		Name: "kwok", Annotations: []string{"kwok.x-k8s.io/node"}, Taints: []string{"kwok.x-k8s.io/node"},
		Privileged: No, Exec: No, Logs: No, Proxy: No, Note: "its Pods are simulated",
	},
	{
		Name: "AWS Fargate", Labels: []string{"eks.amazonaws.com/compute-type=fargate"}, Taints: []string{"eks.amazonaws.com/compute-type=fargate"}, Names: []string{"fargate-"},
		Privileged: No, Exec: Yes, Logs: Yes, Proxy: Yes, Note: "it rejects privileged Pods",
	},
	{
		Name: "Azure Container Instances", Taints: []string{"virtual-kubelet.io/provider=azure"}, Labels: []string{"virtualization=virtualnode2"}, Names: []string{"virtual-node-aci-", "virtual-kubelet-aci-", "virtualnode-"},
		Privileged: No, Exec: Depends, Logs: Yes, Proxy: No, Note: "it rejects privileged Pods, and runs exec without arguments in its first version",
	},
	{
		Name: "Alibaba Cloud ECI", Taints: []string{"virtual-kubelet.io/provider=alibabacloud"}, Labels: []string{"alibabacloud.com/virtual-node"}, Names: []string{"virtual-kubelet-cn-"},
		Privileged: No, Exec: Yes, Logs: Yes, Proxy: No, Note: "it rejects privileged Pods",
	},
	{
		Name: "Tencent super node", Taints: []string{"eks.tke.cloud.tencent.com/eklet"}, Labels: []string{"node.kubernetes.io/instance-type=eklet"}, Names: []string{"eklet-"},
		Privileged: Depends, Exec: Yes, Logs: Yes, Proxy: Depends, Note: "privileged Pods are allowed on request",
	},
	{
		Name: "Liqo", Labels: []string{"liqo.io/type=virtual-node"}, Taints: []string{"virtual-node.liqo.io/not-allowed"},
		Privileged: Depends, Exec: Yes, Logs: Yes, Proxy: No, Note: "the Pod runs in another cluster, which decides; the lab's ConfigMaps and Services must be reflected there",
	},
	{
		Name: "interLink", Taints: []string{"virtual-node.interlink/no-schedule"}, Labels: []string{"virtual-node.interlink/type"},
		Privileged: No, Exec: No, Logs: Yes, Proxy: No, Note: "its Pods are batch jobs",
	},
	{
		Name: "virtual kubelet", Labels: []string{"type=virtual-kubelet", "kubernetes.io/role=virtual-kubelet", "node-role.kubernetes.io/virtual-kubelet"}, Taints: []string{"virtual-kubelet.io/provider"},
		Privileged: No, Exec: Depends, Logs: Depends, Proxy: No, Note: "it depends on its provider, and none offers a network namespace that the sidecar can change",
	},
	{
		Name: "gVisor", Labels: []string{"sandbox.gke.io/runtime=gvisor"}, Taints: []string{"sandbox.gke.io/runtime=gvisor"},
		Privileged: No, Exec: Yes, Logs: Yes, Proxy: Yes, Note: "its kernel has no nftables, VXLAN or tc",
	},
	{
		Name: "GKE Autopilot", Names: []string{"gk3-"},
		Privileged: No, Exec: Yes, Logs: Yes, Proxy: Yes, Note: "it allows only workloads on Google's allowlist",
	},
	{
		Name: "Windows", Labels: []string{corev1.LabelOSStable + "=windows"},
		Privileged: No, Exec: Yes, Logs: Yes, Proxy: Yes, Note: "network operating systems are Linux containers",
	},
	{
		Name: "KubeEdge", Labels: []string{"node-role.kubernetes.io/edge"},
		Privileged: Yes, Exec: Depends, Logs: Depends, Proxy: No, Note: "exec and logs need its CloudStream; Pods on different sites reach each other only by EdgeMesh",
	},
}

// kubelet is every other worker.
var kubelet = Runtime{Name: "kubelet", Privileged: Yes, Exec: Yes, Logs: Yes, Proxy: Yes}

// RuntimeOf finds a worker's row.
func RuntimeOf(w *corev1.Node) Runtime {
	for _, r := range runtimes {
		if r.meets(w) {
			return r
		}
	}
	return kubelet
}

func (r Runtime) meets(w *corev1.Node) bool {
	taints := map[string]string{}
	for _, t := range w.Spec.Taints {
		taints[t.Key] = t.Value
	}
	return has(w.Labels, r.Labels) || has(taints, r.Taints) || has(w.Annotations, r.Annotations) ||
		begins(w.Spec.ProviderID, r.ProviderIDs) || begins(w.Name, r.Names)
}

func has(values map[string]string, wanted []string) bool {
	for _, w := range wanted {
		key, value, exact := strings.Cut(w, "=")
		if got, ok := values[key]; ok && (!exact || got == value) {
			return true
		}
	}
	return false
}

func begins(text string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}
