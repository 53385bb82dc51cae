package plan

import (
	"fmt"
	"slices"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// excerpt returns the part of a lab that the plan of n may depend on: the lab's settings, the
// node without positions in the topology, and its links. Nodes at the far ends have
// placeholder names. Neither a request nor the key of a stored plan changes with the rest
// of the lab.
func excerpt(l *lab.Lab, n *lab.Node) *lab.Lab {
	node := *n
	node.Pos, node.Policy, node.Stages, node.Ports, node.Endpoints = diag.Pos{}, lab.Policy{}, nil, nil, nil
	node.Mounts = slices.Clone(n.Mounts)
	for i := range node.Mounts {
		node.Mounts[i].Pos = diag.Pos{}
	}
	out := &lab.Lab{Version: l.Version, Name: l.Name, Prefix: l.Prefix, Mgmt: l.Mgmt, Nodes: []*lab.Node{&node}}
	others := map[string]string{}
	other := func(name string) string {
		if name == n.Name {
			return name
		}
		alias, known := others[name]
		if !known {
			alias = fmt.Sprintf("c9s-peer-%d", len(others)+1)
			others[name] = alias
			out.Nodes = append(out.Nodes, &lab.Node{Name: alias, Kind: "linux"})
		}
		return alias
	}
	if n.NetworkMode == lab.NetworkContainer {
		node.NetworkNode = other(n.NetworkNode)
	}
	numbered := map[int]int{}
	far := 0
	for _, e := range n.Endpoints {
		index, done := numbered[e.Link]
		if !done && e.Link >= 0 && e.Link < len(l.Links) {
			index = len(out.Links)
			numbered[e.Link] = index
			link := &lab.Link{Type: l.Links[e.Link].Type, MTU: l.Links[e.Link].MTU}
			for _, end := range l.Links[e.Link].Endpoints {
				if end.Node == n.Name {
					link.Endpoints = append(link.Endpoints, ownEnd(end, index))
					continue
				}
				far++
				link.Endpoints = append(link.Endpoints, &lab.Endpoint{Node: other(end.Node), Interface: fmt.Sprintf("eth%d", far), Link: index})
			}
			out.Links = append(out.Links, link)
		}
		node.Endpoints = append(node.Endpoints, ownEnd(e, index))
	}
	return out
}

func ownEnd(e *lab.Endpoint, link int) *lab.Endpoint {
	out := *e
	out.Link, out.Pos = link, diag.Pos{}
	return &out
}

// contents returns the files that the configuration of n refers to, as far as a planner
// program reads them.
func contents(l *lab.Lab, n *lab.Node) map[lab.Digest][]byte {
	out := map[lab.Digest][]byte{}
	add := func(f *lab.FileRef) {
		if f == nil || f.Placeholder {
			return
		}
		if data, ok := l.Files[f.Digest]; ok {
			out[f.Digest] = data
		}
	}
	if n.StartupConfig != nil {
		add(&n.StartupConfig.File)
	}
	add(n.License)
	for _, f := range n.Extras.SRLAgents {
		add(&f.File)
	}
	for _, f := range n.Extras.CEOSCopyToFlash {
		add(&f.File)
	}
	return out
}

// place sets the position of the node in the diagnostics of a planner program, which has no
// positions.
func place(p *Plan, n *lab.Node) {
	for i := range p.Diagnostics {
		p.Diagnostics[i].Pos = n.Pos
	}
}
