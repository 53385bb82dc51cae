// Package policy is c9s.yaml: profiles that set the Kubernetes side of nodes and
// the quality of links, chosen by selectors.
package policy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// FileNames are the names of the policy file next to a topology, the preferred one first.
var FileNames = []string{"c9s.yaml", "c9s.yml"}

// APIVersion and Kind head every policy file.
const (
	APIVersion = "c9s.dev/v1"
	Kind       = "Policy"
)

// DefaultPriority is a profile's priority where the file does not say.
const DefaultPriority = 100

// The values of mgmt-names.
const (
	mgmtNamesPlain  = "plain"
	mgmtNamesSuffix = "suffix"
)

// The values of placement.
const (
	placementSpread = "spread"
	placementPack   = "pack"
)

// Policy is a compiled policy file: its profiles by priority, then name, and its networks.
type Policy struct {
	profiles   []*profile
	segments   []lab.Segment
	management []MgmtRule
	// external is for nodes whose profiles set none, nil for none.
	external    []lab.ExternalRule
	wires       Wires
	image       string
	sharedClaim string
	// saved reports whether nodes start with their saved configurations.
	saved bool
	// suffixed reports whether management names are NODE.mgmt.
	suffixed bool
	// bootPerWorker is how many Pods may boot at a time on one worker, 0 for any number.
	bootPerWorker int
	// packed reports whether the Pods of the lab prefer to share workers.
	packed bool
}

// profile is one compiled profile.
type profile struct {
	name     string
	priority int
	deny     bool
	pos      diag.Pos
	match    matcher
	set      Set
	links    []linkRule
	// used counts the nodes that the profile matched.
	used int
}

// Profile is one entry of profiles, as a file has it.
type Profile struct {
	// Name is unique in the file.
	Name string `json:"name"`
	// Priority orders the profiles, the lowest first (default 100); equal ones
	// go by name.
	Priority *int `json:"priority,omitempty"`
	// Match selects nodes. Without one, the profile is for every node.
	Match *Match `json:"match,omitempty"`
	// Deny stops the profiles after this one for the nodes that it matches.
	Deny bool `json:"deny,omitempty"`
	// Set is what the nodes get where no earlier profile has set it.
	Set *Set `json:"set,omitempty"`
	// Links sets the quality of what the nodes send on their links.
	Links []LinkRule `json:"links,omitempty"`
}

// File is a policy file.
type File struct {
	// APIVersion is c9s.dev/v1, Kind is Policy.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Image is the c9s image of the lab's Pods.
	Image string `json:"image,omitempty"`
	// MgmtNames is what the nodes are called on the management network: "plain" (the
	// default) for containerlab's names, "suffix" for NODE.mgmt alone.
	MgmtNames string `json:"mgmt-names,omitempty"`
	// Saved starts nodes with the configurations that c9s save wrote, as --saved does.
	Saved bool `json:"saved,omitempty"`
	// SharedClaim is a PersistentVolumeClaim of the namespace that several Pods can mount
	// (ReadWriteMany). It holds the named volumes that several Pods have.
	SharedClaim string `json:"shared-claim,omitempty"`
	// Placement is "spread" (the default) for Pods on as many workers as there are, or "pack"
	// for few workers, where wires stay within a worker.
	Placement string `json:"placement,omitempty"`
	// Boot limits how many devices boot at the same time.
	Boot *Boot `json:"boot,omitempty"`
	// Wires is what all wires of the lab have in common.
	Wires *Wires `json:"wires,omitempty"`
	// Segments are networks with selected nodes as members.
	Segments []Segment `json:"segments,omitempty"`
	// Management says which nodes may reach which others on the management network. The first
	// rule that matches a pair counts; without one, the pair is allowed.
	Management []MgmtRule `json:"management,omitempty"`
	// External says what nodes reach outside the lab, for those whose profiles do not.
	External []ExternalRule `json:"external,omitempty"`
	// Profiles set the Kubernetes side of nodes and the quality of links, for the nodes that
	// they match.
	Profiles []Profile `json:"profiles"`
}

// Boot limits how many devices boot at the same time.
type Boot struct {
	// PerWorker is the number of Pods that boot at a time on one worker.
	PerWorker int `json:"perWorker"`
}

// Wires is what all wires of the lab have in common.
type Wires struct {
	// Encrypt seals every frame between Pods (AES-256-GCM, with the lab's wire
	// key). Such wires are udp ones.
	Encrypt bool `json:"encrypt,omitempty"`
	// Local joins Pods of one worker in its kernel (default true). It needs a folder of the
	// worker.
	Local *bool `json:"local,omitempty"`
}

// Saved reports whether nodes start with their saved configurations.
func (p *Policy) Saved() bool { return p.saved }

// Apply gives every node what the profiles that match it set, each field from the
// first profile that has it, and sets the links' datapaths and impairments. It then limits
// who reaches whom. A profile that matches no node is a warning.
func (p *Policy) Apply(l *lab.Lab, diags *diag.List) {
	l.EncryptWires, l.Image, l.SuffixMgmtNames = p.wires.Encrypt, p.image, p.suffixed
	l.SharedClaim, l.Pack, l.BootPerWorker = p.sharedClaim, p.packed, p.bootPerWorker
	l.NoLocalWires = p.wires.Local != nil && !*p.wires.Local
	for _, prof := range p.profiles {
		prof.used = 0
	}
	for _, n := range l.Nodes {
		view := viewOf(n)
		for _, prof := range p.profiles {
			matched, err := prof.match.matches(n, view)
			if err != nil {
				diags.Errorf(CodeExpression, prof.match.pos, "write an expression that works for every node; has(...) tests whether a field exists", "profile %q: the expression fails for node %q: %v", prof.name, n.Name, err)
				continue
			}
			if !matched {
				continue
			}
			prof.used++
			prof.set.fill(&n.Policy)
			for _, rule := range prof.links {
				rule.apply(l, n)
			}
			if prof.deny {
				break
			}
		}
		if n.Policy.External == nil {
			n.Policy.External = p.external
		}
	}
	p.limitReach(l, diags)
	for _, n := range l.Nodes {
		if s := n.Policy.SSH; s != nil {
			completeLogin(s, n, diags)
		}
	}
	for _, prof := range p.profiles {
		if prof.used == 0 {
			diags.Warnf(CodeUnused, prof.pos, "check its match, or remove it", "profile %q matches no node", prof.name)
		}
	}
}

// completeLogin adds the node's own credentials to its SSH probe.
func completeLogin(s *lab.SSHProbe, n *lab.Node, diags *diag.List) {
	s.Username = cmp.Or(s.Username, n.Credentials.Username)
	if s.Secret == "" {
		s.Password = cmp.Or(s.Password, n.Credentials.Password)
	}
	if s.Username == "" {
		diags.Errorf(CodeInvalid, s.Pos, "add username and password, or secret", "node %q has an SSH probe, and its kind %s has no credentials", n.Name, n.Kind)
	}
}

// With returns the policy with the profiles of another one too, and its limit of boots if p has
// none. What else is not in profiles is that of p.
func (p *Policy) With(other *Policy) *Policy {
	switch {
	case p == nil:
		return other
	case other == nil:
		return p
	}
	out := *p
	out.profiles = slices.Concat(p.profiles, other.profiles)
	if out.bootPerWorker == 0 {
		out.bootPerWorker = other.bootPerWorker
	}
	sortProfiles(out.profiles)
	return &out
}

func sortProfiles(profiles []*profile) {
	slices.SortStableFunc(profiles, func(a, b *profile) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), strings.Compare(a.name, b.name))
	})
}
