package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// report prints diagnostics for people, a line each and the hint under it.
func report(world IO, diags []diag.Diagnostic) {
	for _, d := range diag.Collapse(diags) {
		printDiagnostic(world.Err, d, world.Color)
	}
}

const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	faint  = "\x1b[2m"
	reset  = "\x1b[0m"
)

func printDiagnostic(w io.Writer, d diag.Diagnostic, color bool) {
	if !color {
		fmt.Fprintln(w, d.String())
		if d.Hint != "" {
			fmt.Fprintf(w, "    hint: %s\n", indent(d.Hint))
		}
		return
	}
	tone := yellow
	if d.Severity == diag.Error {
		tone = red
	}
	where := d.Pos.String()
	if where != "" {
		where += ": "
	}
	fmt.Fprintf(w, "%s%s%s:%s %s %s[%s]%s\n", where, tone, d.Severity, reset, d.Message, faint, d.Code, reset)
	if d.Hint != "" {
		fmt.Fprintf(w, "    hint: %s\n", indent(d.Hint))
	}
}

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }

// hasErrors tells whether any diagnostic is an error.
func hasErrors(diags []diag.Diagnostic) bool {
	for _, d := range diags {
		if d.Severity == diag.Error {
			return true
		}
	}
	return false
}

// summary counts errors and warnings: "2 errors, 1 warning".
func summary(diags []diag.Diagnostic) string {
	var errors, warnings int
	for _, d := range diags {
		if d.Severity == diag.Error {
			errors++
		} else {
			warnings++
		}
	}
	return diag.Count(errors, "error") + ", " + diag.Count(warnings, "warning")
}
