package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// topology returns the ConfigMaps with the links of the lab, for its status.
func (b *labBuilder) topology() []*corev1.ConfigMap {
	all, pods := b.topologyLinks(), b.linksDigests()
	parts := splitTopology(all, smallObject, jsonCost(pods))
	if len(parts) > contract.TopologyParts {
		parts = splitTopology(all, largeObject, jsonCost(pods))
	}
	if len(parts) > contract.TopologyParts {
		b.diags.Errorf(CodeDirectorySize, diag.Pos{File: b.index.lab.Source}, "split the lab into several namespaces",
			"the list of %d links needs %d ConfigMaps; there is room for %d", len(all), len(parts), contract.TopologyParts)
	}
	out := make([]*corev1.ConfigMap, len(parts))
	for i, part := range parts {
		out[i] = b.labConfigMap(contract.TopologyName(i), contract.ComponentLab, map[string]string{
			contract.TopologyFile: fmt.Sprintf("{\"version\":%q,\"lab\":%q,%s\"links\":[\n%s\n]}\n", contract.TopologyVersion, b.index.lab.Name, pods, strings.Join(part, ",\n")),
		})
		pods = "" // in the first part alone
	}
	return out
}

// linksDigests are the digests of all Pods' links as a member of the topology's JSON, a Pod a
// line.
func (b *labBuilder) linksDigests() string {
	var lines []string
	for i := range b.index.lab.Pods {
		pod := &b.index.lab.Pods[i]
		if text, ok := b.index.links[pod.Name]; ok {
			lines = append(lines, fmt.Sprintf("%q:%q", pod.Name, contract.LinksDigest([]byte(text))))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "\"pods\":{\n" + strings.Join(lines, ",\n") + "\n},"
}

// splitTopology writes links as lines of JSON, in parts of at most budget bytes. The first
// part has size bytes already.
func splitTopology(all []contract.TopologyLink, budget, size int) [][]string {
	parts := [][]string{nil}
	for _, link := range all {
		data, err := json.Marshal(link)
		if err != nil {
			panic(err) // no part of it can fail
		}
		if cost := jsonCost(string(data)) + 4; size+cost > budget && size > 0 {
			parts, size = append(parts, []string{string(data)}), cost
		} else {
			size += cost
			parts[len(parts)-1] = append(parts[len(parts)-1], string(data))
		}
	}
	return parts
}

// topologyLinks are the links with an end in a Pod of the lab, sorted by that end.
func (b *labBuilder) topologyLinks() []contract.TopologyLink {
	var out []contract.TopologyLink
	for _, link := range b.index.lab.Links {
		var ends []contract.TopologyEnd
		for i, ep := range link.Endpoints {
			if pod := b.index.podOf[ep.Node]; pod != nil && !b.index.skipPod(pod) {
				ends = append(ends, contract.TopologyEnd{Node: ep.Node, Interface: ep.Interface, Impairment: impaired(link.Impairment, i == 1)})
			}
		}
		if len(ends) == 0 {
			continue
		}
		l := contract.TopologyLink{ID: link.WireID, Kind: b.linkKind(link), A: ends[0]}
		if len(ends) == 2 {
			slices.SortFunc(ends, func(a, b contract.TopologyEnd) int {
				return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Interface, b.Interface))
			})
			l.A, l.B = ends[0], &ends[1]
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b contract.TopologyLink) int {
		return cmp.Or(strings.Compare(a.A.Node, b.A.Node), strings.Compare(a.A.Interface, b.A.Interface))
	})
	return out
}

// linkKind is what the sidecar calls a link.
func (b *labBuilder) linkKind(link *lab.Link) string {
	if len(link.Endpoints) != 2 {
		return string(link.Type)
	}
	if a, b := b.index.podOf[link.Endpoints[0].Node], b.index.podOf[link.Endpoints[1].Node]; a != nil && b != nil && a.Name == b.Name {
		return "local"
	}
	return "wire"
}
