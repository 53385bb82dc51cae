// Package kinds is the catalogue of node kinds: what each is called, how its
// interfaces are named and what it needs, as data that a user can add to.
package kinds

import "github.com/c9s-lab/c9s/pkg/lab"

// Kind is one entry of the catalogue.
type Kind struct {
	// Name is the canonical name, Aliases the other names that are accepted.
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	// Description is a line for people.
	Description string `json:"description,omitempty"`
	// RootNamespace marks bridge, ovs-bridge and host: no container.
	RootNamespace bool `json:"rootNamespace,omitempty"`
	// VM marks kinds that run a virtual machine (KVM) in their container.
	VM bool `json:"vm,omitempty"`
	// Refused is the reason why the kind cannot run in a Pod, "" if it can.
	Refused string `json:"refused,omitempty"`
	// RefusedHint says what to do instead.
	RefusedHint string          `json:"refusedHint,omitempty"`
	Credentials lab.Credentials `json:"credentials,omitzero"`
	// StitchLinks makes brief links of this kind veth-stitch.
	StitchLinks bool `json:"stitchLinks,omitempty"`
}
