// Package inventory writes the nodes of a lab for other tools: Ansible, Nornir, Prometheus,
// spreadsheets, and what reads containerlab's topology-data.json. Groups, labels and variables
// are containerlab's.
package inventory

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// Lab is what there is to know about a lab.
type Lab struct {
	Name, Namespace string
	// IPv4 and IPv6 are the management network; not valid where it has none.
	IPv4, IPv6 netip.Prefix
	// Nodes are sorted by name.
	Nodes []Node
	Links []contract.TopologyLink
	// Secrets includes passwords.
	Secrets bool
}

// Node is one node.
type Node struct {
	Name string
	// LongName is containerlab's name of the container, FQDN its domain name.
	LongName, FQDN string
	Kind, Image    string
	// Labels are the topology's.
	Labels     map[string]string
	IPv4, IPv6 netip.Addr
	MAC        string
	MgmtIntf   string
	Username   string
	Password   string
	// Host is where a tool that is not in the lab connects to, and Proxy the command by which
	// ssh gets there; "" where Host is an address that the tool reaches.
	Host, Proxy string
}

// password is the node's, if passwords are to be in the inventory.
func (l *Lab) password(n *Node) string {
	if l.Secrets {
		return n.Password
	}
	return ""
}

// byKind groups the nodes, each group and all groups in the order of their names.
func (l *Lab) byKind() []group {
	var out []group
	for i := range l.Nodes {
		n := &l.Nodes[i]
		at, found := slices.BinarySearchFunc(out, n.Kind, func(g group, kind string) int { return strings.Compare(g.name, kind) })
		if !found {
			out = slices.Insert(out, at, group{name: n.Kind})
		}
		out[at].nodes = append(out[at].nodes, n)
	}
	return out
}

type group struct {
	name  string
	nodes []*Node
}

// shared returns a property that all nodes of the group have alike, "" if they differ.
func (g group) shared(of func(*Node) string) string {
	for _, n := range g.nodes {
		if of(n) != of(g.nodes[0]) {
			return ""
		}
	}
	return of(g.nodes[0])
}
