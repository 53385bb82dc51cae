//go:build !nocluster

package cli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// labNames finds the nodes of a running lab by the names and addresses that they have inside
// the lab, and by NODE.LAB.
type labNames struct {
	client *cluster.Client
	found  cluster.Found

	mu    sync.Mutex
	read  time.Time
	nodes map[string]cluster.Node // by name, in lower case, and by address
}

// readNames reads the lab's nodes and directory.
func readNames(ctx context.Context, client *cluster.Client, found cluster.Found) (*labNames, error) {
	l := &labNames{client: client, found: found}
	return l, l.update(ctx)
}

// update reads them again.
func (l *labNames) update(ctx context.Context) error {
	nodes, err := l.client.Nodes(ctx, l.found)
	if err != nil {
		return err
	}
	directory, err := l.client.Directory(ctx, l.found)
	if err != nil {
		return err
	}
	l.read, l.nodes = time.Now(), nameNodes(l.found.Name, nodes, directory)
	return nil
}

// nameNodes maps names to nodes. A node's own name comes before those that others have beside
// theirs.
func nameNodes(lab string, nodes []cluster.Node, directory contract.Directory) map[string]cluster.Node {
	out := map[string]cluster.Node{}
	add := func(name string, n cluster.Node) {
		name = strings.ToLower(name)
		if _, taken := out[name]; !taken && name != "" {
			out[name] = n
		}
	}
	for _, n := range nodes {
		add(n.Name, n)
		add(n.Name+"."+lab, n)
	}
	by := map[string]contract.DirectoryNode{}
	for _, d := range directory.Nodes {
		by[d.Name] = d
	}
	for _, n := range nodes {
		add(n.Deployment, n)
		d := by[n.Name]
		for _, name := range d.Names {
			add(name, n)
		}
		for _, a := range []netip.Addr{d.IPv4, d.IPv6} {
			if a.IsValid() {
				add(a.String(), n)
			}
		}
	}
	return out
}

// namesAge is how old the names may be when one is not known.
const namesAge = 3 * time.Second

// lookup finds a node. For a name that is not known it reads the lab again: the lab may have
// been edited.
func (l *labNames) lookup(ctx context.Context, name string) (cluster.Node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if n, ok := l.nodes[name]; ok {
		return n, nil
	}
	if time.Since(l.read) > namesAge {
		if err := l.update(ctx); err != nil {
			return cluster.Node{}, err
		}
		if n, ok := l.nodes[name]; ok {
			return n, nil
		}
	}
	return cluster.Node{}, &tunnel.DialError{Reason: tunnel.Denied, Text: fmt.Sprintf("%.100q is no node of lab %s", name, l.found.Name)}
}

// dial connects to a port of a node by a name or address.
func (l *labNames) dial(ctx context.Context, lab *access.Lab, host string, port uint16) (net.Conn, error) {
	n, err := l.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	t := tunnel.Target{Network: tunnel.TCP, Port: port}
	if a, err := netip.ParseAddr(host); err == nil {
		t.Addr = a.Unmap()
	}
	return dialNode(ctx, lab, n.Deployment, t)
}
