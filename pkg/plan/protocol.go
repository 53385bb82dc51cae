package plan

import "github.com/c9s-lab/c9s/pkg/lab"

// ProtocolVersion names the shape of Request and Response. A planner program
// refuses a version that it does not know, and so does c9s.
const ProtocolVersion = "c9s.dev/planner/v1"

// Request is what a planner program gets on standard input: one JSON document.
type Request struct {
	// Version is always the constant ProtocolVersion.
	Version string `json:"version"`
	// Workspace is a folder of the program's own, with mode 0700, which is its
	// working directory, its HOME and, in tmp, its TMPDIR. It is removed when
	// the program has ended.
	Workspace string `json:"workspace"`
	// Node is the name of the node to plan. "" asks for the planner's name only.
	Node string `json:"node,omitempty"`
	// Files is the folder of the bytes that the node refers to, each file named
	// by the 64 hexadecimal digits of its digest.
	Files string `json:"files,omitempty"`
	// Lab holds the node with all that its plan may depend on: the lab's own
	// settings, the nodes that it is linked to or shares a Pod with, and its
	// links. Other nodes, links, Pods and the allocations are left out.
	Lab *lab.Lab `json:"lab,omitempty"`
}

// Response is what a planner program writes to standard output before it ends
// with exit code 0: one JSON document and nothing else.
type Response struct {
	// Version is always the constant ProtocolVersion.
	Version string `json:"version"`
	// Planner is the program's name and version: "hooks/0.79.0".
	Planner string `json:"planner"`
	// Plan is the node's plan. What the topology is to blame for is in its
	// Diagnostics.
	Plan *Plan `json:"plan,omitempty"`
	// Error is why there is no plan, for what is not the topology's fault.
	Error string `json:"error,omitempty"`
}
