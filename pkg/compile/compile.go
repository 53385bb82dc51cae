// Package compile turns a topology file into a lab: every field resolved by
// containerlab's inheritance, every name, address and id settled, every file
// read. It stops at nothing, so that a user is reported all problems at once.
package compile

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/alloc"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
	"github.com/c9s-lab/c9s/pkg/reach"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Policy sets the Kubernetes side of nodes and links; pkg/policy implements it.
type Policy interface {
	// Apply fills node.Policy and Link.Impairment of a lab that is otherwise
	// complete.
	Apply(l *lab.Lab, diags *diag.List)
	// Segments are the networks that the policy declares.
	Segments() []lab.Segment
}

// Fabric configures the routers of a lab; pkg/fabric implements it.
type Fabric interface {
	// Apply sets addresses and startup-configs in a lab whose links and management addresses
	// are settled.
	Apply(l *lab.Lab, ledger *alloc.Ledger, diags *diag.List)
	// Finish runs after the policy.
	Finish(l *lab.Lab)
}

// Options of Compile. The zero value of each is its default.
type Options struct {
	// Namespace overrides the one made from the lab's name.
	Namespace string
	// Kinds is the catalogue; nil means the built-in one.
	Kinds *kinds.Catalogue
	// Env is the environment for __IMPORT_ENVS, env-files and the variables in
	// startup-configs, as NAME=value.
	Env []string
	// Home replaces "~".
	Home string
	// MapFiles supplies a file that the topology names by another one.
	MapFiles map[string]string
	// Supplied are files that came with the topology's text, by their paths in it.
	Supplied map[string]Supplied
	// AllowMissing uses an empty placeholder for a missing file.
	AllowMissing bool
	// Previous are the allocations of an earlier render, to be retained.
	Previous *lab.Allocations
	// Adopt are values for owners that Previous has none for.
	Adopt lab.Adopted
	// Recycle releases the values of removed owners.
	Recycle bool
	// Saved starts nodes with the configurations that c9s save wrote next to the topology.
	Saved bool
	// For is the release of containerlab (one of Releases) that must accept the topology
	// too; "" for none in particular.
	For string
	// Policy is the compiled c9s.yaml; nil means no policy.
	Policy Policy
	// Fabric is the compiled fabric.yaml; nil means no fabric.
	Fabric Fabric
	// Reach is what the topology may read; nil for everything.
	Reach *reach.Reach
	// Fetch downloads startup-configs and licences that are given as URLs.
	Fetch func(ctx context.Context, url string) ([]byte, error)
	// GitHead returns branch and short hash for a lab name with __gitBranch__
	// or __gitHash__.
	GitHead func(ctx context.Context, dir string) (branch, hash string)
}

// Compile returns the lab that f describes. With errors among the diagnostics, the lab is
// incomplete: it can be counted but must not be rendered.
func Compile(ctx context.Context, f *topology.File, o Options) (*lab.Lab, []diag.Diagnostic) {
	if o.Kinds == nil {
		o.Kinds = kinds.Builtin()
	}
	c := &compiler{
		ctx:   ctx,
		o:     o,
		f:     f,
		diags: &diag.List{},
		lab: &lab.Lab{
			Version: lab.Version,
			Source:  baseName(f.Path),
			Files:   map[lab.Digest][]byte{},
		},
		nodes: map[string]*node{}, unsetTold: map[string]bool{}, keys: keyWarned{},
	}
	c.files = newStager(c)
	for _, to := range o.MapFiles {
		o.Reach.Give(absolute(to))
	}
	c.run()
	diags := c.diags.All()
	f.Attribute(diags)
	return c.lab, diags
}

// compiler holds what the steps of one run share.
type compiler struct {
	ctx   context.Context
	o     Options
	f     *topology.File
	diags *diag.List
	lab   *lab.Lab
	files *stager
	nodes map[string]*node
	order []*node // as in the file
	// unsetTold are the environment variables that were reported as not set.
	unsetTold map[string]bool
	// saved are the saved configurations next to the topology, relative to it.
	saved  []string
	keys   keyWarned
	ledger alloc.Ledger
	// segments are the networks of the policy, with their bridges.
	segments []*segment
	// hostPorts are the places of ports with a host side.
	hostPorts []diag.Pos
}

// node is a node under construction: its resolved fields with their positions.
type node struct {
	*lab.Node
	res  resolved
	kind *kinds.Kind
	// known reports whether the kind is in the catalogue and not rejected.
	known bool
	// want4 and want6 are the management addresses that the user wrote.
	want4, want6 netip.Addr
	has4, has6   bool
	waitPos      []waitPos
	folders      []folderUse
	// badInterface is set if an interface name was already rejected.
	badInterface bool
}

// waitPos remembers where a wait-for is written.
type waitPos struct {
	stage lab.StageName
	wait  lab.WaitFor
	pos   diag.Pos
}

func (c *compiler) run() {
	if c.f.Topology == nil {
		c.diags.Errorf(topology.CodeMissingField, diag.Pos{File: c.f.Path}, "add \"topology:\" with \"nodes:\" under it", "the file has no topology")
		c.f.Topology = &topology.Topology{}
	}
	c.compileName()
	c.compileMgmt()
	c.compileCA()
	c.checkVocabulary()
	c.resolveNodes()
	c.bridgeSegments()
	c.nameNodes()
	c.checkKeyBlocks()
	for n := range c.eachNode() {
		c.compileNode(n)
	}
	c.compileNetworkModes()
	c.compileStages()
	c.compileLinks()
	c.checkRelease()
	c.allocate()
	c.shareSecrets()
	c.files.checkMapFiles()
	c.reportSaved()
	c.finish()
	if c.o.Fabric != nil {
		c.o.Fabric.Apply(c.lab, &c.ledger, c.diags)
	}
	if c.o.Policy != nil {
		c.o.Policy.Apply(c.lab, c.diags)
	}
	if c.o.Fabric != nil {
		c.o.Fabric.Finish(c.lab)
	}
	c.checkShared()
	c.allocatePorts()
	c.lab.Allocations = lab.Allocations{Version: lab.AllocationsVersion, Pools: c.ledger.Pools, Released: c.ledger.Released}
	c.lab.PoolSizes = c.ledger.Sizes
}

// eachNode iterates over the nodes in the order of the file. Meanwhile diagnostics are
// those of the node.
func (c *compiler) eachNode() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for _, n := range c.order {
			end := c.diags.ForNode(n.Name)
			more := yield(n)
			end()
			if !more {
				return
			}
		}
	}
}

// finish sorts the nodes and groups them into Pods.
func (c *compiler) finish() {
	for _, n := range c.order {
		c.lab.Nodes = append(c.lab.Nodes, n.Node)
	}
	slices.SortFunc(c.lab.Nodes, func(a, b *lab.Node) int { return strings.Compare(a.Name, b.Name) })
	members := map[string][]string{}
	for _, n := range c.lab.Nodes {
		if n.NetworkMode == lab.NetworkContainer {
			members[n.NetworkNode] = append(members[n.NetworkNode], n.Name)
		}
	}
	for _, n := range c.lab.Nodes {
		if n.NetworkMode != lab.NetworkContainer && n.Kind != hostKind {
			c.lab.Pods = append(c.lab.Pods, lab.Pod{Name: n.ID, Nodes: append([]string{n.Name}, members[n.Name]...)})
		}
	}
	slices.SortFunc(c.lab.Pods, func(a, b lab.Pod) int { return strings.Compare(a.Name, b.Name) })
}

func baseName(path string) string {
	return path[strings.LastIndex(path, "/")+1:]
}
