package site

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

// A Node is a set of namespaces: the control plane or a worker.
type Node struct {
	Cluster Cluster
	Number  int // 0 is the control plane
}

// Control is the node of the control plane, the registry and the bridge.
func (c Cluster) Control() Node { return Node{Cluster: c} }

// Worker is the n-th worker, from 1.
func (c Cluster) Worker(n int) Node { return Node{Cluster: c, Number: n} }

// AllWorkers are the workers in order.
func (c Cluster) AllWorkers() []Node {
	nodes := make([]Node, c.Workers)
	for i := range nodes {
		nodes[i] = c.Worker(i + 1)
	}
	return nodes
}

// AllNodes are the control plane and the workers.
func (c Cluster) AllNodes() []Node { return append([]Node{c.Control()}, c.AllWorkers()...) }

// Name is the Kubernetes name of a worker, "control" otherwise.
func (n Node) Name() string {
	if n.Number == 0 {
		return "control"
	}
	return fmt.Sprintf("n%d", n.Number)
}

// Netns is the name of its network namespace, as `ip netns` knows it.
func (n Node) Netns() string { return "c9s-" + n.Cluster.Name + "-" + n.Name() }

// NetnsPath is where that namespace is mounted.
func (n Node) NetnsPath() string { return filepath.Join("/run/netns", n.Netns()) }

// CgroupPath is its cgroup, relative to every hierarchy's root.
func (n Node) CgroupPath() string { return filepath.Join(n.Cluster.CgroupPath(), n.Name()) }

// State is the folder of its data.
func (n Node) State() string { return filepath.Join(n.Cluster.State(), "nodes", n.Name()) }

// Run is the folder of what a reboot should forget.
func (n Node) Run() string { return filepath.Join(n.Cluster.Run(), n.Name()) }

// Logs is the folder of its services' logs.
func (n Node) Logs() string { return filepath.Join(n.State(), "log") }

// PidFile holds the host's process id of its init.
func (n Node) PidFile() string { return filepath.Join(n.Run(), "init.pid") }

// Addresses are its own on the underlay, with the underlay's length.
func (n Node) Addresses() []netip.Prefix {
	if n.Number == 0 {
		return n.Cluster.underlay(1)
	}
	return n.Cluster.underlay(byte(10 + n.Number))
}

// Address is its IPv4 address.
func (n Node) Address() netip.Addr { return n.Addresses()[0].Addr() }

// PodSubnets are the ranges of its Pods.
func (n Node) PodSubnets() []netip.Prefix {
	c := n.Cluster
	return c.families(
		netip.PrefixFrom(netip.AddrFrom4([4]byte{10, c.podOctet(), byte(n.Number), 0}), 24),
		netip.PrefixFrom(ula(0x100+c.Index, n.Number, 0), 64))
}
