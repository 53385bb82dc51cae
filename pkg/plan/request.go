package plan

import (
	"slices"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// excerpt is the part of a lab that the plan of n may depend on, so that a
// request does not grow with the lab. Its links are numbered anew.
func excerpt(l *lab.Lab, n *lab.Node) *lab.Lab {
	out := &lab.Lab{
		Version: l.Version, Name: l.Name, Prefix: l.Prefix, Namespace: l.Namespace, Source: l.Source, Mgmt: l.Mgmt, CA: l.CA,
		Allocations: lab.Allocations{Version: l.Allocations.Version, Pools: map[string]map[string]string{}},
	}
	near := map[string]bool{n.Name: true}
	for _, p := range l.Pods {
		if slices.Contains(p.Nodes, n.Name) {
			out.Pods = append(out.Pods, p)
			for _, name := range p.Nodes {
				near[name] = true
			}
		}
	}
	renumbered := map[int]int{}
	for _, e := range n.Endpoints {
		if _, done := renumbered[e.Link]; done || e.Link < 0 || e.Link >= len(l.Links) {
			continue
		}
		link := *l.Links[e.Link]
		index := len(out.Links)
		renumbered[e.Link] = index
		link.Endpoints = make([]*lab.Endpoint, len(link.Endpoints))
		for i, end := range l.Links[e.Link].Endpoints {
			near[end.Node] = true
			link.Endpoints[i] = renumber(end, index)
		}
		out.Links = append(out.Links, &link)
	}
	for _, other := range l.Nodes {
		if !near[other.Name] {
			continue
		}
		kept := *other
		kept.Endpoints = nil
		for _, e := range other.Endpoints {
			if index, ok := renumbered[e.Link]; ok {
				kept.Endpoints = append(kept.Endpoints, renumber(e, index))
			}
		}
		out.Nodes = append(out.Nodes, &kept)
	}
	return out
}

func renumber(e *lab.Endpoint, link int) *lab.Endpoint {
	out := *e
	out.Link = link
	return &out
}

// filesOf are the digests of the files that n refers to.
func filesOf(n *lab.Node) []lab.Digest {
	var out []lab.Digest
	add := func(f *lab.FileRef) {
		if f != nil && !f.Placeholder {
			out = append(out, f.Digest)
		}
	}
	if n.StartupConfig != nil {
		add(&n.StartupConfig.File)
	}
	add(n.License)
	for _, m := range n.Mounts {
		add(m.File)
		if m.Dir != nil {
			for _, e := range m.Dir.Entries {
				add(e.File)
			}
		}
	}
	for _, f := range n.Extras.SRLAgents {
		add(&f.File)
	}
	for _, f := range n.Extras.CEOSCopyToFlash {
		add(&f.File)
	}
	return out
}
