package live

import (
	"time"

	"github.com/c9s-lab/c9s/pkg/graph"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/status"
)

// Commands returns command lines for what a user can do with a node or a link.
type Commands struct {
	Node func(status.Node) []graph.Command
	Link func(status.Link) []graph.Command
}

// Graph returns the graph of a running lab. labels are those of the topology, by node; rates
// are what a Meter measured.
func Graph(l status.Lab, labels map[string]map[string]string, rates Rates, commands Commands, now time.Time) *graph.Graph {
	d := graph.Draft{Name: l.Name, Namespace: l.Namespace, State: l.State, Time: now.UTC().Truncate(time.Second)}
	for _, n := range l.Nodes {
		node := graph.Node{ID: n.Pod, Name: n.Name, Kind: n.Kind, Image: n.Image, Live: &graph.NodeState{
			State: string(n.State), Reason: n.Reason, Worker: n.Worker, Pod: n.PodName, Restarts: n.Restarts, Commands: commands.Node(n),
		}}
		if n.IPv4.IsValid() {
			node.Mgmt = n.IPv4.String()
		} else if n.IPv6.IsValid() {
			node.Mgmt = n.IPv6.String()
		}
		d.Node(node, labels[n.Name])
	}
	for _, k := range l.Links {
		live := linkState(k, rates, commands)
		a, b := graph.End{Node: k.A.Node, Interface: k.A.Interface}, graph.End{Node: k.B.Node, Interface: k.B.Interface}
		if k.B.Node != "" {
			d.Link(a, b, lab.LinkVeth, live)
		} else if name := beyond(k.Kind); name != "" {
			d.LinkOutside(a, name, "", lab.LinkType(k.Kind), live)
		}
	}
	return d.Graph()
}

// beyond names what a link with one end in the lab leads to, "" for nothing.
func beyond(kind string) string {
	switch lab.LinkType(kind) {
	case lab.LinkHost, lab.LinkMacvlan:
		return "worker"
	case lab.LinkMgmtNet:
		return "management network"
	case lab.LinkVXLAN, lab.LinkVXLANStitch:
		return "tunnel"
	}
	return ""
}

func linkState(k status.Link, rates Rates, commands Commands) *graph.LinkState {
	s := &graph.LinkState{
		State: string(k.State), Reason: k.Reason, Datapath: k.Datapath, RTT: k.RTT, Loss: k.Loss, Drops: k.Drops,
		Carrier: [2]string{carrier(k.A), ""}, Impairment: [2]string{status.Impairment(k.A.Impairment), status.Impairment(k.B.Impairment)},
		Commands: commands.Link(k),
	}
	if k.B.Node != "" {
		s.Carrier[1] = carrier(k.B)
	}
	if rate, ok := rates[KeyOf(k)]; ok {
		s.Rate = &rate
	}
	return s
}

func carrier(e status.End) string {
	switch {
	case !e.Known:
		return ""
	case e.Carrier:
		return "up"
	}
	return "down"
}
