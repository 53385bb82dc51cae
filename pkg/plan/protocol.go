package plan

import "github.com/c9s-lab/c9s/pkg/lab"

// ProtocolVersion names the shape of Request and Response. A planner program
// rejects a version that it does not know, and so does c9s.
const ProtocolVersion = "c9s.dev/planner/v2"

// Request asks a planner program for the plan of one node. The program reads one
// JSON document after the other from standard input until that ends.
type Request struct {
	// Version is always the constant ProtocolVersion.
	Version string `json:"version"`
	// Node is the name of the node to plan.
	Node string `json:"node"`
	// Lab holds the node with all that its plan may depend on: the lab's own
	// settings, its links, and the nodes that it is linked to or shares a Pod with,
	// reduced to what a plan may see of them. Everything else is left out.
	Lab *lab.Lab `json:"lab"`
	// Files are the bytes that the node's own configuration refers to: its
	// startup-config, licence and extras. Binds are not among them.
	Files map[lab.Digest][]byte `json:"files,omitempty"`
	// Full asks for all steps, including those that c9s takes from its catalogue.
	Full bool `json:"full,omitempty"`
}

// Response is what a planner program writes to standard output: one when it is
// ready, which tells Planner and Kinds, then one for each Request.
type Response struct {
	// Version is always the constant ProtocolVersion.
	Version string `json:"version"`
	// Planner is the program's name and version: "hooks/0.79.0".
	Planner string `json:"planner"`
	// Kinds are the names of the kinds that the program can plan here.
	Kinds []string `json:"kinds,omitempty"`
	// Plan is the node's plan. Faults of the topology are in its Diagnostics.
	Plan *Plan `json:"plan,omitempty"`
	// Error is why there is no plan, for what is not a fault of the topology.
	Error string `json:"error,omitempty"`
	// Last announces that the program ends after this response, since the node
	// left something behind in it.
	Last bool `json:"last,omitempty"`
}
