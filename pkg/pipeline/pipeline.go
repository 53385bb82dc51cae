// Package pipeline takes a topology from its source to rendered objects: it reads,
// compiles, plans in parallel, resolves images, issues certificates and renders. It
// collects the diagnostics of all stages and prints nothing.
package pipeline

import (
	"slices"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// HasErrors reports whether any diagnostic is an error.
func HasErrors(diags []diag.Diagnostic) bool {
	return slices.ContainsFunc(diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error })
}
