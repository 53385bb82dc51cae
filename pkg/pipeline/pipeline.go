// Package pipeline takes a compiled topology to rendered objects: it plans the nodes in
// parallel, issues certificates and renders. It collects the diagnostics of all stages
// and prints nothing.
package pipeline

import (
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// Compiled is a topology file with the lab that was compiled from it.
type Compiled struct {
	File *topology.File
	Lab  *lab.Lab
	// Diags are the diagnostics of reading and compiling.
	Diags []diag.Diagnostic
}

// HasErrors reports whether any diagnostic is an error.
func HasErrors(diags []diag.Diagnostic) bool {
	for _, d := range diags {
		if d.Severity == diag.Error {
			return true
		}
	}
	return false
}
