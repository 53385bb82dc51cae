package doctor

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

// checkWorkers looks for workers that take the lab's Pods at all.
func checkWorkers(f Facts, n Needs) []Check {
	const name = "workers"
	if f.WorkersErr != nil {
		return unread(name, f.WorkersErr)
	}
	able := landing(f, n)
	var out []Check
	c := Check{Name: name, Result: OK, Found: fmt.Sprintf("%d of %s accept Pods", len(able), diag.Count(len(f.Workers), "worker"))}
	if len(able) == 0 {
		c.Result, c.Remedy = Problem, "add Linux workers, or uncordon existing ones (kubectl get nodes)"
	}
	out = append(out, c)
	for _, p := range n.Pods {
		if len(able) > 0 && !slices.ContainsFunc(able, func(w *corev1.Node) bool { return mayLand(&p.Spec, w) }) {
			out = append(out, Check{Name: name, Result: Problem, Found: "no worker accepts node " + strings.Join(p.Nodes, ", "),
				Remedy: "check nodeSelector, affinity and tolerations in the policy file, and the labels and taints of the workers"})
		}
	}
	var old []string
	for _, w := range able {
		v, err := version.ParseGeneric(w.Status.NodeInfo.KubeletVersion)
		if err == nil && v.LessThan(sidecarsOn) {
			old = append(old, w.Name+" ("+w.Status.NodeInfo.KubeletVersion+")")
		}
	}
	if len(old) > 0 {
		out = append(out, Check{Name: name, Result: Warning, Found: "kubelets that may not support sidecar containers: " + strings.Join(old, ", "),
			Remedy: "upgrade them to 1.29 or later, or exclude them with nodeSelector in the policy file"})
	}
	return out
}

// checkRuntimes reports workers that serve less than a kubelet, and of nodes that
// may land there.
func checkRuntimes(f Facts, n Needs) []Check {
	var out []Check
	for _, w := range landing(f, n) {
		r := RuntimeOf(w)
		var lacks []string
		for _, s := range []struct {
			serves Serves
			what   string
		}{{r.Privileged, "privileged Pods"}, {r.Exec, "exec"}, {r.Logs, "logs"}, {r.Proxy, "status without a controller"}} {
			switch s.serves {
			case No:
				lacks = append(lacks, "no "+s.what)
			case Depends:
				lacks = append(lacks, "perhaps no "+s.what)
			}
		}
		if len(lacks) == 0 {
			continue
		}
		c := Check{Name: "worker " + w.Name, Result: Warning, Found: fmt.Sprintf("%s: %s", r.Name, strings.Join(lacks, ", "))}
		if r.Note != "" {
			c.Found += " (" + r.Note + ")"
		}
		if r.Privileged == No {
			c.Result = Problem
		}
		if nodes := nodesOn(n, w); len(nodes) > 0 {
			c.Found += "; could be scheduled there: " + few(nodes)
		}
		c.Remedy = "exclude it: use nodeSelector or affinity in the policy file, or taint the worker"
		out = append(out, c)
	}
	return out
}

// nodesOn are the lab's nodes that may land on a worker.
func nodesOn(n Needs, w *corev1.Node) []string {
	var out []string
	for _, p := range n.Pods {
		if mayLand(&p.Spec, w) {
			out = append(out, p.Nodes...)
		}
	}
	slices.Sort(out)
	return out
}

// few names at most five.
func few(names []string) string { return diag.Few(names, 5) }

// checkDevices looks for /dev/kvm and /dev/net/tun: by the probe where there is
// one, otherwise by labels.
func checkDevices(f Facts, n Needs) []Check {
	if f.WorkersErr != nil {
		return nil
	}
	out := checkDevice(f, n, "/dev/kvm", probe.KVM, func(p Pod) bool { return p.KVM }, "enable (nested) virtualization there, and label the workers that have it "+contract.LabelKVM+"=true")
	return append(out, checkDevice(f, n, "/dev/net/tun", probe.TUN, func(p Pod) bool { return p.TUN }, "load the kernel module tun there")...)
}

func checkDevice(f Facts, n Needs, path string, feature probe.Feature, wants func(Pod) bool, remedy string) []Check {
	var nodes []string
	var pods []Pod
	for _, p := range n.Pods {
		if wants(p) {
			pods, nodes = append(pods, p), append(nodes, p.Nodes...)
		}
	}
	if n.Lab != "" && len(pods) == 0 {
		return nil
	}
	if n.Lab == "" {
		pods = n.Pods
	}
	var with, without, unknown []string
	for _, w := range landing(f, Needs{Pods: pods}) {
		switch has, known := hasDevice(f, w, feature); {
		case !known:
			unknown = append(unknown, w.Name)
		case has:
			with = append(with, w.Name)
		default:
			without = append(without, w.Name)
		}
	}
	if len(with)+len(without)+len(unknown) == 0 {
		return nil // nowhere to land: told by the workers' check
	}
	c := Check{Name: path, Result: OK, Remedy: remedy}
	whom := ""
	if len(nodes) > 0 {
		whom = "; needed by " + few(nodes)
	}
	switch {
	case len(without) == 0 && len(unknown) == 0 && len(with) > 0:
		c.Found, c.Remedy = "every worker has it", ""
	case len(with) > 0:
		c.Result, c.Found = Warning, fmt.Sprintf("available on %s, unknown on %s%s", few(with), few(append(without, unknown...)), whom)
	case len(unknown) > 0 && n.Lab == "":
		return nil // nobody asks for it, and no label says
	case len(unknown) > 0:
		c.Result, c.Found, c.Remedy = Warning, "no worker has a label for it"+whom, "check with --probe, and label the workers that have it "+contract.LabelKVM+"=true"
		if feature != probe.KVM {
			c.Remedy = "check with --probe"
		}
	default:
		c.Result, c.Found = n.needed(len(nodes) > 0), "no worker has it"+whom
	}
	return []Check{c}
}

func hasDevice(f Facts, w *corev1.Node, feature probe.Feature) (has, known bool) {
	if p, ok := f.Probes[w.Name]; ok && p.Err == nil {
		if o, tried := p.Report.Outcome(feature); tried {
			return o.Error == "", true
		}
	}
	if feature != probe.KVM {
		return false, false
	}
	for _, label := range contract.KVMLabels {
		if value, ok := w.Labels[label]; ok {
			return value == "true", true
		}
	}
	return false, false
}
