// Package generate writes topologies that are networks already: names, links and addresses of
// hosts, a fabric file that configures the routers, and checks, for a fabric, a ring, a mesh, a
// hub with spokes or the core of a provider.
package generate

import (
	"errors"
	"fmt"
	"maps"
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
	// ISP is a ring of core routers (P), provider edges (PE) with links to two of them, and
	// customers' routers (CE).
	ISP = "isp"
)

// Shapes are all shapes.
var Shapes = []string{Clos, Ring, Mesh, Hub, ISP}

// Limits of a network: the hosts of a router are numbered within a /23.
const (
	maxNodes     = 10_000
	maxTier      = 8_000
	maxHosts     = 200
	maxEdges     = 1_000
	maxCustomers = 16
)

// KindFRR is the default kind of routers.
const KindFRR = "frr"

const (
	kindHost      = "linux"
	groupHost     = "host"
	groupCustomer = "ce"
	// The public images of kinds.
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
	// Name is the lab's, and begins the names of its files.
	Name  string
	Shape string
	// Tiers of Clos, those with hosts first; edges and core of ISP; the other shapes have one.
	Tiers []Tier
	// Hosts is the number of hosts of each router of the first tier (of each spoke, for Hub; of
	// each customer, for ISP with customers).
	Hosts int
	// Customers is the number of customers of each edge of ISP.
	Customers int
	// Underlay is ebgp, isis or ospf, "" for the first of them that the kinds have.
	Underlay string
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
		wrong("the name %q: use at most 40 lower-case letters, digits and dashes, starting and ending with a letter or digit", o.Name)
	}
	if !slices.Contains(Shapes, o.Shape) {
		wrong("the shape %q: use one of %s", o.Shape, strings.Join(Shapes, ", "))
	}
	least := map[string]int{Ring: 3, Mesh: 2, Hub: 2}[o.Shape]
	most := maxTier
	if o.Shape == ISP {
		most = maxEdges
	}
	total := 0
	for i, t := range o.Tiers {
		if t.Count < max(least, 1) || t.Count > most {
			wrong("%s: use %d to %d", counted(t.Count, t.noun(i)), max(least, 1), most)
		}
		if t.Kind == "" {
			wrong("tier %d has no kind", i+1)
		}
		total += t.Count
	}
	switch tiers := len(o.Tiers); {
	case o.Shape == Clos && tiers == 0:
		wrong("0 tiers: a clos has one or more")
	case o.Shape == ISP && tiers != 2:
		wrong("%d tiers: an isp has two", tiers)
	case o.Shape != Clos && o.Shape != ISP && tiers != 1:
		wrong("%d tiers: a %s has one", tiers, o.Shape)
	}
	if len(o.Tiers) > maxTiers {
		wrong("%d tiers: use up to %d", len(o.Tiers), maxTiers)
	}
	if o.Hosts < 0 || o.Hosts > maxHosts {
		wrong("%d hosts for each router: use 0 to %d", o.Hosts, maxHosts)
	}
	if o.Customers < 0 || o.Customers > maxCustomers {
		wrong("%d customers for each edge: use 0 to %d", o.Customers, maxCustomers)
	}
	if len(o.Tiers) > 0 {
		routers := o.Tiers[0].Count // with hosts
		if o.Shape == ISP && o.Customers > 0 {
			routers *= o.Customers
			total += routers
		}
		total += o.Hosts * routers
	}
	if total > maxNodes {
		wrong("the network has %d nodes: use at most %d", total, maxNodes)
	}
	if known := o.protocols(); o.Underlay != "" && !slices.Contains(known, o.Underlay) {
		if len(known) == 0 {
			wrong("the underlay %q: c9s has no configuration of these kinds for the shape %s", o.Underlay, o.Shape)
		} else {
			wrong("the underlay %q: for the kinds of this network, use one of %s", o.Underlay, strings.Join(known, ", "))
		}
	}
	return errors.Join(errs...)
}

// Files returns the files of a network: its topology, and if its kinds can be configured, a
// fabric file and checks.
func Files(o Options) ([]File, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	n := build(o)
	n.underlay = o.Underlay
	if known := o.protocols(); n.underlay == "" && len(known) > 0 {
		n.underlay = known[0]
	}
	files := []File{{o.Name + ".clab.yml", n.topology()}}
	if n.underlay != "" {
		files = append(files, File{"fabric.yaml", n.fabric()}, File{o.Name + ".test.yaml", n.checks()})
	}
	return files, nil
}

// Topology returns the topology alone, which refers to no other file.
func Topology(o Options) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return build(o).topology(), nil
}

// Placeholders are the kinds whose images the user has to fill in.
func Placeholders(o Options) []string {
	kinds := map[string]bool{}
	for _, t := range o.Tiers {
		if o.image(t.Kind) == "" {
			kinds[t.Kind] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}
