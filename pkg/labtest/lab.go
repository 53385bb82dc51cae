package labtest

import (
	"context"
	"net/netip"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// Lab is a running lab.
type Lab struct {
	Name  string
	Nodes []Node
	Links []Link
	// Exec runs a command in the main container of a node. The error is for a command that
	// could not run.
	Exec func(ctx context.Context, node Node, argv []string) (Output, error)
	// Measure lets the sidecar of a Pod measure.
	Measure func(ctx context.Context, pod string, r contract.MeasureRequest) (contract.Measurement, error)
	// Cut makes a link lose every frame, both ways, until undo is called.
	Cut func(ctx context.Context, node, in string) (undo func(context.Context) error, err error)
}

// Node is a node of a running lab.
type Node struct {
	Name string
	// Pod is the name of its Pod's objects.
	Pod string
	// Container is set for a node that has one.
	Container bool
	// Kind is nil for a node whose kind is not in the catalogue.
	Kind       *kinds.Kind
	IPv4, IPv6 netip.Addr
	// Names are those that resolve to the addresses.
	Names []string
}

// Pingable reports whether the sidecar can ping from the node's network namespace, as the node
// itself would.
func (n Node) Pingable() bool { return len(n.kindPing()) == 0 }

// Link is a link between two nodes.
type Link struct{ A, B End }

// End is one end of a link. Interface is its name in Linux, Alias that of the kind.
type End struct {
	Node, Pod, Interface, Alias string
}

func (e End) String() string { return e.Node + ":" + e.Interface }

// Output is what a command printed.
type Output struct {
	Code     int
	Out, Err string
}

// node returns the node of a name.
func (l *Lab) node(name string) (Node, bool) {
	for _, n := range l.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return Node{}, false
}
