package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// directory returns the ConfigMaps with the lab's names and management addresses.
func (b *labBuilder) directory() []*corev1.ConfigMap {
	entries := make([]directoryEntry, 0, len(b.index.lab.Nodes))
	for _, n := range b.index.lab.Nodes {
		if e, ok := b.directoryEntry(n); ok {
			entries = append(entries, e)
		}
	}
	parts := splitDirectory(entries, smallObject)
	if len(parts) > contract.DirectoryParts {
		parts = splitDirectory(entries, largeObject)
	}
	if len(parts) > contract.DirectoryParts {
		b.diags.Errorf(CodeDirectorySize, diag.Pos{File: b.index.lab.Source}, "split the lab into several namespaces",
			"the directory of %d nodes needs %d ConfigMaps; there is room for %d", len(entries), len(parts), contract.DirectoryParts)
	}
	out := make([]*corev1.ConfigMap, len(parts))
	for i, part := range parts {
		var nodes, hosts strings.Builder
		for j, e := range part {
			if j > 0 {
				nodes.WriteString(",\n")
			}
			nodes.WriteString(e.json)
			hosts.WriteString(e.hosts)
		}
		out[i] = b.labConfigMap(contract.DirectoryName(i), contract.ComponentLab, map[string]string{
			contract.DirectoryKey(i): fmt.Sprintf("{\"version\":%q,\"lab\":%q,\"nodes\":[\n%s\n]}\n", contract.DirectoryVersion, b.index.lab.Name, nodes.String()),
			contract.HostsKey(i):     hosts.String(),
		})
	}
	return out
}

// directoryEntry is one node, as a line of JSON and as hosts-file lines.
type directoryEntry struct {
	json, hosts string
}

func splitDirectory(entries []directoryEntry, budget int) [][]directoryEntry {
	parts := [][]directoryEntry{nil}
	size := 0
	for _, e := range entries {
		cost := jsonCost(e.json) + jsonCost(e.hosts) + 4
		if size+cost > budget && size > 0 {
			parts = append(parts, nil)
			size = 0
		}
		size += cost
		parts[len(parts)-1] = append(parts[len(parts)-1], e)
	}
	return parts
}

// mgmtSuffix is the domain of names on the management network.
const mgmtSuffix = "mgmt"

func (b *labBuilder) directoryEntry(n *lab.Node) (directoryEntry, bool) {
	pod, ok := b.index.podOf[n.Name]
	if !ok || b.index.skipPod(pod) {
		return directoryEntry{}, false
	}
	entry := contract.DirectoryNode{Name: n.Name, Pod: pod.Name, Names: b.hostNames(n)}
	primary := b.index.nodes[pod.Nodes[0]]
	if primary != n {
		entry.Kind = contract.LabelValue(n.Kind)
	}
	if primary.OnMgmtNetwork() {
		entry.IPv4, entry.IPv6, entry.MAC = primary.MgmtIPv4, primary.MgmtIPv6, b.index.mgmtMAC(primary)
	}
	data, err := json.Marshal(entry)
	if err != nil {
		panic(err) // no part of it can fail
	}
	names := strings.Join(entry.Names, " ")
	var hosts strings.Builder
	if entry.IPv4.IsValid() {
		fmt.Fprintf(&hosts, "%s\t%s\n", entry.IPv4, names)
	}
	if entry.IPv6.IsValid() {
		fmt.Fprintf(&hosts, "%s\t%s\n", entry.IPv6, names)
	}
	return directoryEntry{json: string(data), hosts: hosts.String()}, true
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
