// Package kinds is the catalogue of node kinds: what each is called, how its
// interfaces are named and what it needs, as data that a user can add to.
package kinds

import "github.com/c9s-lab/c9s/pkg/lab"

// The parts of a plan that an entry may decide whoever plans (Kind.Decides).
const (
	DecidesSteps   = "steps"
	DecidesStartup = "startup"
)

// Kind is one entry of the catalogue. Text fields that hold "{{" are Go
// templates over plan.NodeData, executed by the built-in planner.
type Kind struct {
	// Name is the canonical name, Aliases the other names that are accepted.
	Name    string   `yaml:"name" json:"name"`
	Aliases []string `yaml:"aliases" json:"aliases,omitempty"`
	// Extends names the entry that this one completes: mappings are merged key
	// by key, a null removes a key, everything else replaces.
	Extends string `yaml:"extends" json:"extends,omitempty"`
	// Description is a line for people.
	Description string `yaml:"description" json:"description,omitempty"`
	// RootNamespace marks bridge, ovs-bridge and host: no container.
	RootNamespace bool `yaml:"rootNamespace" json:"rootNamespace,omitempty"`
	// VM marks kinds that run a virtual machine (KVM) in their container.
	VM bool `yaml:"vm" json:"vm,omitempty"`
	// Refused is the reason why the kind cannot run in a Pod, "" if it can.
	Refused string `yaml:"refused" json:"refused,omitempty"`
	// RefusedHint says what to do instead.
	RefusedHint string          `yaml:"refusedHint" json:"refusedHint,omitempty"`
	Credentials lab.Credentials `yaml:"credentials" json:"credentials,omitzero"`
	// Ports are where the device is managed.
	Ports []Port `yaml:"ports" json:"ports,omitempty"`
	// StitchLinks makes brief links of this kind veth-stitch.
	StitchLinks bool `yaml:"stitchLinks" json:"stitchLinks,omitempty"`
	// Interfaces says how data interfaces are named.
	Interfaces Interfaces `yaml:"interfaces" json:"interfaces,omitzero"`
	// Components marks kinds with cards.
	Components bool `yaml:"components" json:"components,omitempty"`
	// Keys are the keys that nodes of the kind can have beside the generic ones.
	Keys map[string]Key `yaml:"keys" json:"keys,omitempty"`
	// Since is the release of containerlab that brought the kind, "" for
	// ContainerlabVersion or earlier.
	Since string `yaml:"since" json:"since,omitempty"`
	// Newer is a template: a node for which it is not empty uses something that
	// ContainerlabVersion does not have.
	Newer string `yaml:"newer" json:"newer,omitempty"`
	// Types are the values that a node's type may have.
	Types Types `yaml:"types" json:"types,omitzero"`
	// Container is what runs, Files what lies in the node's folder.
	Container Container `yaml:"container" json:"container,omitzero"`
	Files     []File    `yaml:"files" json:"files,omitempty"`
	Startup   Startup   `yaml:"startup" json:"startup,omitzero"`
	License   License   `yaml:"license" json:"license,omitzero"`
	// Certificate is "always" (the node gets one whatever the topology says),
	// "optional" (where certificate.issue is set) or "never" (the default).
	Certificate string `yaml:"certificate" json:"certificate,omitempty"`
	// Steps run once the containers have started, before the user's exec.
	Steps     []Step     `yaml:"steps" json:"steps,omitempty"`
	Readiness *Readiness `yaml:"readiness" json:"readiness,omitempty"`
	Needs     Needs      `yaml:"needs" json:"needs,omitzero"`
	// LinkApplyMode is live, restart or recreate.
	LinkApplyMode string `yaml:"linkApplyMode" json:"linkApplyMode,omitempty"`
	StopSignal    string `yaml:"stopSignal" json:"stopSignal,omitempty"`
	// Persist are paths in the node's folder with what the device saves.
	Persist []string `yaml:"persist" json:"persist,omitempty"`
	// Save is how the running configuration is saved, nil if it cannot be.
	Save *Save `yaml:"save" json:"save,omitempty"`
	// Reset is how the device goes back to its declared configuration without a restart, nil
	// if it cannot.
	Reset *Reset `yaml:"reset" json:"reset,omitempty"`
	// Ping is the command by which c9s test pings from a node whose data plane is not the
	// network namespace of its container. Its words are templates that see .Address, .IPv6,
	// .Device, .Size and .Payload; a word that comes out empty is left out. Exit code 1
	// means that there was no answer.
	Ping []string `yaml:"ping" json:"ping,omitempty"`
	// Neighbours are the readers of the neighbours of protocols, by protocol.
	Neighbours map[string]*Neighbours `yaml:"neighbours" json:"neighbours,omitempty"`
	// Decides are the parts of a plan that are taken from the catalogue whoever
	// plans, since they depend on what only the device or the issued certificate
	// can tell: "steps" (those of the kind), "startup" (the configuration of a node
	// that gives none).
	Decides []string `yaml:"decides" json:"decides,omitempty"`
	// Indexes is how many indexes of nodes the device can tell apart, 0 for any number.
	Indexes int `yaml:"indexes" json:"indexes,omitempty"`
	// Behaviour names the Go code of pkg/plan that completes the plan.
	Behaviour string `yaml:"behaviour" json:"behaviour,omitempty"`
	// MgmtInterface is the device's name of its management interface, for
	// templates (.MgmtIntf).
	MgmtInterface string `yaml:"mgmtInterface" json:"mgmtInterface,omitempty"`
	// Missing is what containerlab does for the kind and this catalogue does
	// not; a user is warned of it. Differs is what is done another way.
	Missing []string `yaml:"missing" json:"missing,omitempty"`
	Differs []string `yaml:"differs" json:"differs,omitempty"`

	mapper *mapper
	// custom marks an entry that was loaded over the catalogue that c9s comes with.
	custom bool
}

// Custom reports whether a user defines the kind or overrides the built-in one.
func (k *Kind) Custom() bool { return k.custom }

// ReadsStartup reports whether the kind reads a startup-config.
func (k *Kind) ReadsStartup() bool { return k.Startup.File != "" || k.Startup.Extensions != nil }

// Interfaces are the naming rules of a kind. The zero value takes any name.
//
// A name that Keep matches stays. A name that Match matches is mapped: the Linux
// name is Prefix and a number, or Name with the groups of Match filled in; the
// topology's name becomes the alias. Any other name stays unless Strict is set.
// Allow, Deny and Mgmt are then checked on the Linux name.
type Interfaces struct {
	// Help completes "allowed are ...".
	Help string `yaml:"help" json:"help,omitempty"`
	// Match is a regular expression (RE2) with the named group "port", and
	// "slot" or any group that Name uses. It is not anchored by itself.
	Match string `yaml:"match" json:"match,omitempty"`
	// Since is the release of containerlab that brought Match, "" for
	// ContainerlabVersion or earlier.
	Since string `yaml:"since" json:"since,omitempty"`
	// Keep is a regular expression of names that are Linux names already.
	Keep string `yaml:"keep" json:"keep,omitempty"`
	// Strict refuses names that neither Keep nor Match matches.
	Strict bool `yaml:"strict" json:"strict,omitempty"`
	// Prefix of the Linux name, "eth" by default. The number is
	// slot*SlotPorts + port - Offset + First, and not below First.
	Prefix    string `yaml:"prefix" json:"prefix,omitempty"`
	Offset    int    `yaml:"offset" json:"offset,omitempty"`
	First     int    `yaml:"first" json:"first,omitempty"`
	SlotPorts int    `yaml:"slotPorts" json:"slotPorts,omitempty"`
	// Name is the Linux name with {group} for each group of Match; a part in
	// brackets is left out where its group matched nothing. Every number is at
	// least 1. Prefix and what belongs to it are not used then.
	Name string `yaml:"name" json:"name,omitempty"`
	// OffsetAlone is Offset for nodes with network-mode none, 0 for the same.
	OffsetAlone int `yaml:"offsetAlone" json:"offsetAlone,omitempty"`
	// Count is "cards" for ports that are counted over the node's components,
	// "management" for ports of which the key mgmt-intf names one for eth0, or
	// "breakouts" for ports that the keys port-count and breakouts may split into
	// lanes, which the group "lane" of Match has.
	Count string `yaml:"count" json:"count,omitempty"`
	// Allow and Deny are regular expressions that a Linux name has to match and
	// must not match.
	Allow string `yaml:"allow" json:"allow,omitempty"`
	Deny  string `yaml:"deny" json:"deny,omitempty"`
	// Mgmt is the name that only a node with network-mode none may use.
	Mgmt string `yaml:"mgmt" json:"mgmt,omitempty"`
}
