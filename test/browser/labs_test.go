package browser

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/graph"
	"github.com/c9s-lab/c9s/pkg/graph/live"
	"github.com/c9s-lab/c9s/pkg/status"
)

// lab is a running lab that a test changes.
type lab struct {
	status.Lab
	labels map[string]map[string]string
	rates  live.Rates
	ports  map[string]int
}

func newLab(name string) *lab {
	return &lab{Lab: status.Lab{Name: name, Namespace: "lab-" + name, State: status.LabReady}, labels: map[string]map[string]string{}, rates: live.Rates{}, ports: map[string]int{}}
}

func (l *lab) node(name, level string, state status.State) {
	i := len(l.Nodes)
	l.Nodes = append(l.Nodes, status.Node{
		Name: name, Kind: []string{"linux", "nokia_srlinux", "arista_ceos"}[i%3], Image: "example.org/" + name, State: state, Worker: fmt.Sprintf("worker-%d", i%3+1),
		Pod: name, PodName: name + "-7d4b9c-x2x7q", IPv4: netip.AddrFrom4([4]byte{172, 20, byte(i / 250), byte(i%250 + 2)}),
	})
	l.labels[name] = map[string]string{"graph-level": level}
}

// link joins the next interfaces of two nodes.
func (l *lab) link(a, b string) {
	end := func(name string) status.End {
		l.ports[name]++
		return status.End{Node: name, Interface: fmt.Sprintf("eth%d", l.ports[name]), Known: true, Carrier: true}
	}
	l.Links = append(l.Links, status.Link{ID: contract.WireID(len(l.Links) + 1), Kind: "wire", A: end(a), B: end(b), State: status.LinkUp, Up: true, Datapath: "vxlan", RTT: .21})
}

// rate sets what the ends of a link send, in bit/s.
func (l *lab) rate(i int, a, b float64) { l.rates[live.KeyOf(l.Links[i])] = [2]float64{a, b} }

func (l *lab) graph() *graph.Graph {
	return live.Graph(l.Lab, l.labels, l.rates, live.Commands{
		Node: func(n status.Node) []graph.Command {
			return []graph.Command{{Label: "Log in", Line: "c9s ssh " + n.Name + " --lab " + l.Name}, {Label: "Shell", Line: "c9s shell " + n.Name + " --lab " + l.Name}}
		},
		Link: func(k status.Link) []graph.Command {
			return []graph.Command{{Label: "Capture both ends", Line: fmt.Sprintf("c9s capture --link %s:%s %s:%s", k.A.Node, k.A.Interface, k.B.Node, k.B.Interface)}}
		},
	}, time.Unix(1767225600, 0))
}

// small is a lab with every state, an impaired, a lossy and a broken link, parallel links, a
// long name and a way out.
func small() *lab {
	l := newLab("small")
	l.node("spine1", "1", status.StateReady)
	l.node("spine2", "1", status.StateReady)
	for i := range 4 {
		l.node(fmt.Sprintf("leaf%d", i+1), "2", status.StateReady)
	}
	l.node("client-with-a-very-long-name-of-its-own", "3", status.StateReady)
	l.node("client2", "3", status.StateBooting)
	l.node("client3", "3", status.StateFailed)
	l.node("client4", "3", status.StateStopped)
	l.Nodes[3].State, l.Nodes[3].Reason = status.StateDegraded, "its link to spine2 is down"
	for i := range 4 {
		leaf := fmt.Sprintf("leaf%d", i+1)
		l.link("spine1", leaf)
		l.link("spine2", leaf)
	}
	l.link("leaf1", "client-with-a-very-long-name-of-its-own")
	l.link("leaf1", "client-with-a-very-long-name-of-its-own")
	l.link("leaf2", "client2")
	l.link("leaf3", "client3")
	l.link("leaf4", "client4")
	l.link("spine1", "spine2")
	l.Links = append(l.Links, status.Link{Kind: "macvlan", State: status.LinkUp, A: status.End{Node: "leaf4", Interface: "eth9", Known: true, Carrier: true}})
	l.Links[0].A.Impairment = &contract.Impairment{DelayMS: 50, Loss: 1}
	l.Links[3].State, l.Links[3].Up, l.Links[3].Reason, l.Links[3].B.Carrier = status.LinkDown, false, "leaf2 has set eth2 down", false
	l.Links[4].Loss = 12
	l.Links[5].Datapath = "udp"
	l.Links[12].State, l.Links[12].Up = status.LinkDown, false
	l.rate(2, 3.2e6, 812e6)
	l.rate(8, 41e3, 12)
	return l
}

// large is a fabric of 1,000 nodes with 40 spines and 160 leaves.
func large() *lab {
	l := newLab("large")
	for i := range 40 {
		l.node(fmt.Sprintf("spine%d", i+1), "1", status.StateReady)
	}
	for i := range 160 {
		l.node(fmt.Sprintf("leaf%d", i+1), "2", status.StateReady)
		for s := range 4 {
			l.link(fmt.Sprintf("spine%d", (i*4+s)%40+1), fmt.Sprintf("leaf%d", i+1))
		}
	}
	for i := range 800 {
		l.node(fmt.Sprintf("host%d", i+1), "3", status.StateReady)
		l.link(fmt.Sprintf("leaf%d", i%160+1), fmt.Sprintf("host%d", i+1))
	}
	l.Nodes[77].State = status.StateDegraded
	l.Links[100].State, l.Links[100].Up = status.LinkDown, false
	return l
}

// chain is a line of nodes, each one a level of its own.
func chain(n int) *lab {
	l := newLab("chain")
	for i := range n {
		name := fmt.Sprintf("r%d", i+1)
		l.node(name, "", status.StateReady)
		if i > 0 {
			l.link(fmt.Sprintf("r%d", i), name)
		}
	}
	return l
}

// mesh is a full mesh: the drawing with the least room for labels.
func mesh(n int) *lab {
	l := newLab("mesh")
	for i := range n {
		l.node(fmt.Sprintf("r%d", i+1), "1", status.StateReady)
		for j := range i {
			l.link(fmt.Sprintf("r%d", j+1), fmt.Sprintf("r%d", i+1))
			l.rate(len(l.Links)-1, 1e9, 2e6)
		}
	}
	return l
}
