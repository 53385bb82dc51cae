package plan

import "github.com/c9s-lab/c9s/pkg/lab"

// ProtocolVersion identifies the schema of Request and Response. Planner programs and c9s
// reject unknown versions.
const ProtocolVersion = "c9s.dev/planner/v2"

// Request requests the plan of one node from a planner program. The program reads JSON
// documents from standard input until its end.
type Request struct {
	// Version is always the constant ProtocolVersion.
	Version string `json:"version"`
	// Node is the name of the node to plan.
	Node string `json:"node"`
	// Lab holds the node with everything that its plan may depend on: the lab's settings,
	// the node's links, and the nodes that it is linked to or shares a Pod with, reduced to
	// what a plan may use. Everything else is omitted.
	Lab *lab.Lab `json:"lab"`
	// Files holds the files that the node's configuration refers to: its startup-config,
	// licence and extras, without binds.
	Files map[lab.Digest][]byte `json:"files,omitempty"`
	// Full requests all steps, including those that c9s takes from its catalogue.
	Full bool `json:"full,omitempty"`
}

// Response is what a planner program writes to standard output: one when it is ready, with
// Planner and Kinds, and then one for each Request.
type Response struct {
	// Version is always the constant ProtocolVersion.
	Version string `json:"version"`
	// Planner is the program's name and version: "hooks/0.79.0".
	Planner string `json:"planner"`
	// Kinds lists the kinds that the program can plan on this machine.
	Kinds []string `json:"kinds,omitempty"`
	// Plan is the node's plan. Faults of the topology are in its Diagnostics.
	Plan *Plan `json:"plan,omitempty"`
	// Error explains why there is no plan, if the topology is not the cause.
	Error string `json:"error,omitempty"`
	// Last is set if the program exits after this response, because planning the node
	// changed its state.
	Last bool `json:"last,omitempty"`
}
