// Package diag holds diagnostics of a topology: each with a stable code, a position,
// a node and a hint, collected so that a run reports all of them at once.
package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity is whether a diagnostic stops the run.
type Severity string

const (
	// Error stops: nothing is written or applied.
	Error Severity = "error"
	// Warning is reported; the run continues.
	Warning Severity = "warning"
	// Note is reported, and counts as nothing wrong.
	Note Severity = "note"
)

// Pos is a place in a file. Line and Column are 1-based; 0 means that the place
// is not known, which is the case for facts that no line of the file states.
type Pos struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String is file:line:column, without the parts that are not known.
func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Diagnostic is one thing that is wrong (Error) or that a user should know
// (Warning): what, where, why, and what to do about it (Hint).
type Diagnostic struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Pos
	// Node is the node that the diagnostic is about, "" if it is about several or
	// none.
	Node string `json:"node,omitempty"`
	// Link means that the diagnostic is about the topology's links.
	Link    bool   `json:"-"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// String is the line that a user reads, without the hint.
func (d Diagnostic) String() string {
	where := d.Pos.String()
	if where != "" {
		where += ": "
	}
	return fmt.Sprintf("%s%s: %s [%s]", where, d.Severity, d.Message, d.Code)
}

// List collects diagnostics. The zero value is ready for use.
type List struct {
	items []Diagnostic
	// seen holds the index of each diagnostic in items, its Node omitted.
	seen map[Diagnostic]int
	node string
}

// ForNode makes node the Node of all diagnostics that are added until the returned
// function is called.
func (l *List) ForNode(node string) (end func()) {
	before := l.node
	l.node = node
	return func() { l.node = before }
}

// Add appends d unless the same diagnostic is in the list. One that several nodes
// share, as from defaults, is in the list once and without a Node.
func (l *List) Add(d Diagnostic) {
	if d.Node == "" && !d.Link {
		d.Node = l.node
	}
	key := d
	key.Node = ""
	if i, ok := l.seen[key]; ok {
		if l.items[i].Node != d.Node {
			l.items[i].Node = ""
		}
		return
	}
	if l.seen == nil {
		l.seen = map[Diagnostic]int{}
	}
	l.seen[key] = len(l.items)
	l.items = append(l.items, d)
}

// Errorf adds an error at pos. hint may be empty.
func (l *List) Errorf(code Code, pos Pos, hint, format string, args ...any) {
	l.Add(Diagnostic{Code: code, Severity: Error, Pos: pos, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Warnf adds a warning at pos. hint may be empty.
func (l *List) Warnf(code Code, pos Pos, hint, format string, args ...any) {
	l.Add(Diagnostic{Code: code, Severity: Warning, Pos: pos, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Append adds all of other.
func (l *List) Append(other []Diagnostic) {
	for _, d := range other {
		l.Add(d)
	}
}

// HasErrors reports whether any diagnostic is an Error.
func (l *List) HasErrors() bool {
	return slices.ContainsFunc(l.items, func(d Diagnostic) bool { return d.Severity == Error })
}

// All returns the diagnostics sorted by file, line, column, code and message.
func (l *List) All() []Diagnostic {
	out := slices.Clone(l.items)
	slices.SortStableFunc(out, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Code, b.Code),
			strings.Compare(a.Message, b.Message),
		)
	})
	return out
}

// Count returns how many errors and warnings are in the list.
func (l *List) Count() (errors, warnings int) {
	for _, d := range l.items {
		switch d.Severity {
		case Error:
			errors++
		case Warning:
			warnings++
		}
	}
	return errors, warnings
}

// Few lists names, and counts those after the first most.
func Few(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
