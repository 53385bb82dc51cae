package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/sidecar/probe"
)

// feature is what a lab has of something of the kernel.
type feature struct {
	name probe.Feature
	// required by every lab; others by the links that use it.
	required bool
	// lost is what there is not without it, module what to load.
	lost, module string
}

// features is the kernel's part of the contract, /dev/kvm and tun aside.
var features = []feature{
	{probe.Veth, true, "devices have no interfaces", "veth"},
	{probe.Rules, true, "there is no management network (CONFIG_IP_MULTIPLE_TABLES)", ""},
	{probe.NAT, true, "there is no management network", "nft_nat nft_chain_nat"},
	{probe.Conntrack, true, "there is no management network", "nf_conntrack nft_ct"},
	{probe.VXLAN, true, "management addresses of other Pods are unreachable", "vxlan"},
	{probe.Shield, true, "links carry no frames", "cls_bpf sch_ingress"},
	{probe.Packet, true, "links carry no frames", "af_packet"},
	{probe.Bridge, false, "nodes of the kinds bridge and ovs-bridge do not start", "bridge"},
	{probe.Macvlan, false, "macvlan links do not work", "macvlan"},
	{probe.Redirect, false, "links use only udp, and stitched VXLANs do not work", "cls_u32 act_mirred sch_ingress"},
	{probe.PeerRedirect, false, "links within a worker are not joined in its kernel (Linux 5.10)", "cls_bpf sch_ingress"},
	{probe.Flower, false, "virtual machines have no links", "cls_flower act_mirred sch_ingress"},
	{probe.VnetHeader, false, "links are slower", ""},
	{probe.Segment, false, "links are slower", ""},
	{probe.Dummy, false, "dummy links use a veth with an idle end", "dummy"},
	{probe.VLAN, false, "Linux nodes have no VLAN interfaces", "8021q"},
}

// checkProbes reports workers that could not be probed.
func checkProbes(f Facts, _ Needs) []Check {
	var out []Check
	for _, worker := range slices.Sorted(maps.Keys(f.Probes)) {
		if err := f.Probes[worker].Err; err != nil {
			out = append(out, Check{Name: "probe on " + worker, Result: Warning, Found: err.Error(), Remedy: "set the c9s image with --image; push it to a registry with c9s image push"})
		}
	}
	return out
}

// probed are the workers that answered, sorted.
func probed(f Facts) []string {
	var out []string
	for _, worker := range slices.Sorted(maps.Keys(f.Probes)) {
		if f.Probes[worker].Err == nil {
			out = append(out, worker)
		}
	}
	return out
}

func checkKernel(f Facts, n Needs) []Check {
	workers := probed(f)
	if len(workers) == 0 {
		return nil
	}
	var out []Check
	for _, want := range features {
		lacking := map[string][]string{} // by the error
		for _, w := range workers {
			if o, ok := f.Probes[w].Report.Outcome(want.name); ok && o.Error != "" {
				lacking[o.Error] = append(lacking[o.Error], w)
			}
		}
		nodes := n.Features[want.name]
		for _, text := range slices.Sorted(maps.Keys(lacking)) {
			c := Check{Name: "kernel: " + string(want.name), Result: n.needed(want.required || len(nodes) > 0)}
			c.Found = fmt.Sprintf("missing on %s (%s): %s", few(lacking[text]), text, want.lost)
			if len(nodes) > 0 {
				c.Found += "; needed by " + few(nodes)
			}
			c.Remedy = "use workers with another kernel"
			if want.module != "" {
				c.Remedy = "modprobe " + want.module + " on the worker, or " + c.Remedy
			}
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		out = append(out, Check{Name: "kernel", Result: OK, Found: fmt.Sprintf("%s have all of %d features", diag.Count(len(workers), "worker"), len(features))})
	}
	return out
}

// minMTU is the least that IPv6 asks of a link (RFC 8200, 5).
const minMTU = 1280

// checkMTU looks at the Pod network, and whether Pods resolve names by it.
func checkMTU(f Facts, _ Needs) []Check {
	workers := probed(f)
	byMTU := map[int][]string{}
	failing := map[string][]string{}
	for _, w := range workers {
		r := f.Probes[w].Report
		if r.MTU > 0 {
			byMTU[r.MTU] = append(byMTU[r.MTU], w)
		}
		if r.DNS != "" {
			failing[r.DNS] = append(failing[r.DNS], w)
		}
	}
	var out []Check
	for _, text := range slices.Sorted(maps.Keys(failing)) {
		out = append(out, Check{Name: "DNS in Pods", Result: Problem, Found: fmt.Sprintf("a Pod on %s cannot resolve the cluster's name: %s", few(failing[text]), text),
			Remedy: "check the Pod network and CoreDNS: Pods of a lab find each other through DNS"})
	}
	if len(byMTU) == 0 {
		return out
	}
	sizes := slices.Sorted(maps.Keys(byMTU))
	c := Check{Name: "Pod MTU", Result: OK, Found: fmt.Sprintf("%d", sizes[0])}
	if len(sizes) > 1 {
		var parts []string
		for _, size := range sizes {
			parts = append(parts, fmt.Sprintf("%d on %s", size, few(byMTU[size])))
		}
		c.Result, c.Found, c.Remedy = Warning, strings.Join(parts, ", "), "use the same MTU on all workers; otherwise the smallest one limits large frames"
	}
	if sizes[0] < minMTU {
		c.Result, c.Found, c.Remedy = Warning, c.Found+fmt.Sprintf(", less than IPv6 requires (%d)", minMTU), "raise the MTU of the Pod network"
	}
	return append(out, c)
}
