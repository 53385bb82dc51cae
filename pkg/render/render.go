// Package render turns a lab and the plans of its nodes into plain Kubernetes
// objects: typed, in a fixed order, the same bytes for the same input. It touches
// nothing but memory; only WriteFolder and ApplyOverlay meet the disk.
package render

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// Options are what the caller decides about the output.
type Options struct {
	// Image is the c9s image: prepare, wire, exec and the controller.
	Image string
	// Version is c9s' own version, for the record in annotations.
	Version string
	// Planner is the Name of the planner that made the plans ("builtin/0.79.0").
	Planner string
	// NoController leaves the controller and its rights out.
	NoController bool
	// Only limits the output to the Pods of these nodes (names or IDs) and the
	// objects of the lab as a whole; empty means all.
	Only []string
	// MapImage rewrites image references; the first rule that matches wins.
	MapImage []ImageRule
	// WireKey asks for the Secret c9s-wire-key with this key in it. It is never
	// made up here: rendering the same lab twice must give the same bytes.
	WireKey []byte
	// Certificates asks for the Secret <id>-tls of these nodes (by name).
	Certificates map[string]Certificate
}

// Certificate is a node's issued certificate, all parts in PEM.
type Certificate struct {
	CA, Cert, Key []byte
}

// Output is a rendered lab.
type Output struct {
	// Lab is the lab's name as written, Source its topology file's base name.
	Lab       string
	Source    string
	Namespace string
	// Planner and Version say what made the output.
	Planner string
	Version string
	Objects []Object
}

// Object is one Kubernetes object.
type Object struct {
	// Group is the file of a rendered folder that the object belongs to:
	// "namespace.yaml", "lab.yaml", "controller.yaml", "nodes/r1.yaml",
	// "secrets/r1.yaml".
	Group string
	// Object is a typed API object; after an overlay it may be unstructured.
	Object runtime.Object
	// Source is the line that the object comes from: "topo.clab.yml:17".
	Source string
	// Secret tells that the object holds what must not be committed.
	Secret bool

	// json is the object's canonical JSON: see encode.
	json []byte
}

// JSON returns the object in JSON, without the API's empty leftovers (status,
// creationTimestamp). The caller must not change the bytes.
func (o *Object) JSON() ([]byte, error) {
	if o.json != nil {
		return o.json, nil
	}
	return encode(o.Object)
}

// Render renders l. plans are by node name and must hold every node that is
// rendered. The Output is nil where a diagnostic is an error.
func Render(l *lab.Lab, plans map[string]*plan.Plan, opts Options) (*Output, []diag.Diagnostic) {
	return &Output{Lab: l.Name, Source: l.Source, Namespace: l.Namespace, Planner: opts.Planner, Version: opts.Version}, nil
}
