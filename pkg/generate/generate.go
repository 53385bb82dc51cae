// Package generate writes topologies that are networks already: names, links, addresses,
// startup-configs and checks of a fabric, a ring, a mesh or a hub with spokes.
package generate

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Shapes of a network.
const (
	// Clos has tiers of nodes, each linked to every node of the next tier.
	Clos = "clos"
	// Ring links each node to the next one.
	Ring = "ring"
	// Mesh links each node to every other one.
	Mesh = "mesh"
	// Hub links every node to the first one.
	Hub = "hub"
)

// Shapes are all shapes.
var Shapes = []string{Clos, Ring, Mesh, Hub}

// Limits of a network. A tier is numbered within a block of addresses, and the hosts of a
// router within a /24.
const (
	maxNodes = 10_000
	maxTier  = 8_000
	maxHosts = 200
)

// KindFRR is the only kind for which startup-configs are written.
const KindFRR = "frr"

const (
	kindHost = "linux"
	// The images of kinds that can be had by anybody.
	imageFRR  = "quay.io/frrouting/frr:10.2.1"
	imageHost = "ghcr.io/srl-labs/network-multitool:latest"
	imageSRL  = "ghcr.io/nokia/srlinux:latest"
)

// Tier is a number of routers that are alike.
type Tier struct {
	// Name is what its nodes are called, before their numbers: "leaf". For Clos, "" means
	// containerlab's names: "node1-" for the first tier.
	Name  string
	Count int
	Kind  string
	Type  string
}

// Options describe a network.
type Options struct {
	// Name is the lab's, which files are called by too.
	Name  string
	Shape string
	// Tiers of Clos, those with hosts first; the other shapes have one.
	Tiers []Tier
	// Hosts is the number of hosts of each router of the first tier (of each spoke, for Hub).
	Hosts int
	// Images by kind. Kinds with public images need none.
	Images map[string]string
}

// File is a file to write.
type File struct {
	// Path is relative to the folder of the topology.
	Path string
	Data []byte
}

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// check returns everything that is wrong with the options.
func (o Options) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.Name) > 40 || !validName.MatchString(o.Name) {
		wrong("the name %q: use at most 40 lower-case letters, digits and dashes", o.Name)
	}
	if !slices.Contains(Shapes, o.Shape) {
		wrong("the shape %q: use one of %s", o.Shape, strings.Join(Shapes, ", "))
	}
	least := map[string]int{Ring: 3, Mesh: 2, Hub: 2}[o.Shape]
	total := 0
	for i, t := range o.Tiers {
		if t.Count < max(least, 1) || t.Count > maxTier {
			wrong("%d nodes in tier %d: use %d to %d", t.Count, i+1, max(least, 1), maxTier)
		}
		if t.Kind == "" {
			wrong("tier %d has no kind", i+1)
		}
		total += t.Count
	}
	if len(o.Tiers) == 0 || o.Shape != Clos && len(o.Tiers) != 1 {
		wrong("%d tiers: a %s has %s", len(o.Tiers), o.Shape, map[bool]string{true: "one or more", false: "one"}[o.Shape == Clos])
	}
	if len(o.Tiers) > maxTiers {
		wrong("%d tiers: use up to %d", len(o.Tiers), maxTiers)
	}
	if o.Hosts < 0 || o.Hosts > maxHosts {
		wrong("%d hosts for each router: use 0 to %d", o.Hosts, maxHosts)
	}
	if len(o.Tiers) > 0 {
		total += o.Hosts * o.Tiers[0].Count
	}
	if total > maxNodes {
		wrong("the network has %d nodes: use at most %d", total, maxNodes)
	}
	return errors.Join(errs...)
}

// node is a router or a host.
type node struct {
	name, kind, typ string
	group           string
	asn             uint32
	loopback        netip.Addr   // of a router
	lan             netip.Prefix // with the node's address: the router is the gateway of its hosts
	ports           []port       // in the order of their interfaces
}

// port is an interface of a node with a link.
type port struct {
	peer *node
	far  int // index of the peer's port
}

// network is a network with all its numbers.
type network struct {
	options Options
	nodes   []*node
	links   [][2]end
	hosts   []*node
}

type end struct {
	node *node
	port int
}

func (n *network) link(a, b *node) {
	at, bt := len(a.ports), len(b.ports)
	a.ports, b.ports = append(a.ports, port{b, bt}), append(b.ports, port{a, at})
	n.links = append(n.links, [2]end{{a, at}, {b, bt}})
}

// Files returns the files of a network: its topology, startup-configs and checks.
func Files(o Options) ([]File, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	n := build(o)
	files := []File{{o.Name + ".clab.yml", n.topology(true)}}
	if n.configured() {
		for _, x := range n.nodes {
			if x.kind == KindFRR {
				files = append(files, File{configPath(x), frrConfig(x)})
			}
		}
		files = append(files, File{o.Name + ".test.yaml", n.checks()})
	}
	return files, nil
}

// Topology returns the topology alone, which names no other file.
func Topology(o Options) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return build(o).topology(false), nil
}

// configured reports whether every router has a startup-config, so that the network works
// as it is.
func (n *network) configured() bool {
	return !slices.ContainsFunc(n.options.Tiers, func(t Tier) bool { return t.Kind != KindFRR })
}
