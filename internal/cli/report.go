package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/pipeline"
)

// A page has at most pageLength diagnostics, and pageSame of one code if it has not room
// for all.
const (
	pageLength = 24
	pageSame   = 4
)

// report prints diagnostics for people, a line each and the hint under it: a page at
// most, which has the errors before all else.
func report(world IO, diags []diag.Diagnostic) {
	shown, left := page(diag.Collapse(diags))
	for _, d := range shown {
		printDiagnostic(world.Err, d, world.Color)
	}
	if len(left) > 0 {
		fmt.Fprintf(world.Err, "... and %s; c9s validate --all prints all\n", summary(left))
	}
}

// reportAll prints every diagnostic.
func reportAll(world IO, diags []diag.Diagnostic) {
	for _, d := range diags {
		printDiagnostic(world.Err, d, world.Color)
	}
}

// page chooses the diagnostics of a page, in their order.
func page(diags []diag.Diagnostic) (shown, left []diag.Diagnostic) {
	if len(diags) <= pageLength {
		return diags, nil
	}
	chosen := map[int]bool{}
	same := map[diag.Code]int{}
	for _, severity := range []diag.Severity{diag.Error, diag.Warning, diag.Note} {
		for i, d := range diags {
			if d.Severity == severity && len(chosen) < pageLength && same[d.Code] < pageSame {
				chosen[i] = true
				same[d.Code]++
			}
		}
	}
	for i, d := range diags {
		if chosen[i] {
			shown = append(shown, d)
		} else {
			left = append(left, d)
		}
	}
	return shown, left
}

const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	faint  = "\x1b[2m"
	reset  = "\x1b[0m"
)

// printDiagnostic prints one. Only its first line starts at the margin, whatever the
// message holds.
func printDiagnostic(w io.Writer, d diag.Diagnostic, color bool) {
	tone, grey, end := "", "", ""
	if color {
		tone, grey, end = yellow, faint, reset
		switch d.Severity {
		case diag.Error:
			tone = red
		case diag.Note:
			tone = faint
		}
	}
	where := show.Cell(d.Pos.String())
	if where != "" {
		where += ": "
	}
	w = show.Raw(w)
	fmt.Fprintf(w, "%s%s%s:%s %s %s[%s]%s\n", where, tone, d.Severity, end, indent(d.Message), grey, d.Code, end)
	if d.Hint != "" {
		fmt.Fprintf(w, "    hint: %s\n", indent(d.Hint))
	}
}

// indent is text for a terminal, its further lines four columns in.
func indent(s string) string { return strings.ReplaceAll(show.Text(s), "\n", "\n    ") }

// hasErrors reports whether any diagnostic is an error.
func hasErrors(diags []diag.Diagnostic) bool { return pipeline.HasErrors(diags) }

// summary counts errors and warnings: "2 errors, 1 warning".
func summary(diags []diag.Diagnostic) string {
	var errors, warnings int
	for _, d := range diags {
		switch d.Severity {
		case diag.Error:
			errors++
		case diag.Warning:
			warnings++
		}
	}
	return diag.Count(errors, "error") + ", " + diag.Count(warnings, "warning")
}
