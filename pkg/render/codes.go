package render

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes returns every code of this package with what it means.
func Codes() map[diag.Code]string { return nil }
