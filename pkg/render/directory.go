package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/internal/packed"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// directory returns the ConfigMap with the lab's names and management addresses.
func (b *labBuilder) directory() *corev1.ConfigMap {
	var nodes strings.Builder
	for _, n := range b.index.lab.Nodes {
		entry, ok := b.directoryNode(n)
		if !ok {
			continue
		}
		data, err := json.Marshal(entry)
		if err != nil {
			panic(err) // no part of it can fail
		}
		if nodes.Len() > 0 {
			nodes.WriteString(",\n")
		}
		nodes.Write(data)
	}
	text := fmt.Sprintf("{\"version\":%q,\"lab\":%q,\"nodes\":[\n%s\n]}\n", contract.DirectoryVersion, b.index.lab.Name, nodes.String())
	cm := b.labConfigMap(contract.DirectoryConfigMap, contract.ComponentLab, nil)
	if b.index.opts.Owner != "" {
		cm.Annotations[contract.AnnotationOwner] = b.index.opts.Owner
	}
	if jsonCost(text) <= smallObject {
		cm.Data = map[string]string{contract.DirectoryFile: text}
		return cm
	}
	data := packed.Pack([]byte(text))
	if len(data) > largeObject*3/4 { // base64 is 4/3 of it
		b.diags.Errorf(CodeDirectorySize, diag.Pos{File: b.index.lab.Source}, "split the lab into several namespaces",
			"the names of %d nodes need %d kB, which do not fit into a ConfigMap", len(b.index.lab.Nodes), len(data)/1000)
	}
	cm.BinaryData = map[string][]byte{contract.DirectoryFile + packed.Suffix: data}
	return cm
}

// mgmtSuffix is the domain of names on the management network.
const mgmtSuffix = "mgmt"

// directoryNode returns a node's entry, and false for one without a Pod.
func (b *labBuilder) directoryNode(n *lab.Node) (contract.DirectoryNode, bool) {
	pod, ok := b.index.podOf[n.Name]
	if !ok || b.index.skipPod(pod) {
		return contract.DirectoryNode{}, false
	}
	entry := contract.DirectoryNode{Name: n.Name, Pod: pod.Name, Names: b.hostNames(n)}
	primary := b.index.nodes[pod.Nodes[0]]
	if primary != n {
		entry.Kind = contract.LabelValue(n.Kind)
	}
	if primary.OnMgmtNetwork() {
		entry.IPv4, entry.IPv6, entry.MAC = primary.MgmtIPv4, primary.MgmtIPv6, b.index.mgmtMAC(primary)
	}
	return entry, true
}

// hostNames are all names of a node: its own, containerlab's long one, the FQDN,
// aliases, and the names of a chassis' components. Where the policy says so, it is the
// node's own with a suffix alone.
func (b *labBuilder) hostNames(n *lab.Node) []string {
	if b.index.lab.SuffixMgmtNames {
		return []string{n.Name + "." + mgmtSuffix}
	}
	names := []string{n.Name, n.LongName, n.FQDN}
	names = append(names, n.Aliases...)
	for _, c := range n.Components {
		if c.Slot != "" {
			slot := strings.ToLower(c.Slot)
			names = append(names, n.Name+"-"+slot, n.LongName+"-"+slot)
		}
	}
	out := names[:0]
	for _, name := range names {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// allocations returns the ConfigMaps with the lab's allocations: each holds a
// lab.Allocations with a part of the owners. JoinAllocations reads them back.
func (b *labBuilder) allocations() []*corev1.ConfigMap {
	parts := splitAllocations(b.index.lab.Allocations)
	out := make([]*corev1.ConfigMap, len(parts))
	for i, part := range parts {
		data, err := json.MarshalIndent(part, "", " ")
		if err != nil {
			panic(err) // maps of strings
		}
		out[i] = b.labConfigMap(contract.AllocationsName(i), contract.ComponentLab, map[string]string{contract.AllocationsKey(i): string(data) + "\n"})
		if i == 0 && b.index.opts.Owner != "" { // destroy --keep-data leaves it
			out[i].Annotations[contract.AnnotationOwner] = b.index.opts.Owner
		}
	}
	return out
}

func splitAllocations(all lab.Allocations) []lab.Allocations {
	fresh := func() lab.Allocations {
		return lab.Allocations{Version: all.Version, Pools: map[string]map[string]string{}}
	}
	parts := []lab.Allocations{fresh()}
	size := 0
	add := func(pools map[string]map[string]string, into func(*lab.Allocations) *map[string]map[string]string) {
		for _, pool := range slices.Sorted(maps.Keys(pools)) {
			for _, owner := range slices.Sorted(maps.Keys(pools[pool])) {
				claim := pools[pool][owner]
				cost := jsonCost(owner) + jsonCost(claim) + 16
				if size+cost > smallObject {
					parts = append(parts, fresh())
					size = 0
				}
				size += cost
				target := into(&parts[len(parts)-1])
				if *target == nil {
					*target = map[string]map[string]string{}
				}
				if (*target)[pool] == nil {
					(*target)[pool] = map[string]string{}
				}
				(*target)[pool][owner] = claim
			}
		}
	}
	add(all.Pools, func(a *lab.Allocations) *map[string]map[string]string { return &a.Pools })
	add(all.Released, func(a *lab.Allocations) *map[string]map[string]string { return &a.Released })
	return parts
}

func (b *labBuilder) labConfigMap(name, component string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   typeMeta("v1", "ConfigMap"),
		ObjectMeta: b.index.labMeta(name, component),
		Data:       data,
	}
}
