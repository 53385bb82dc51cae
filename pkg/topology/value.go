package topology

import (
	"github.com/c9s-lab/c9s/pkg/diag"
)

// Str is a scalar with the text that the user wrote ("0644" stays "0644").
type Str struct {
	Value string
	Pos   diag.Pos
}

// IsSet reports whether the value exists and is not empty, which is what
// containerlab calls set for every string field.
func (s Str) IsSet() bool { return s.Value != "" }

// Bool is a boolean in YAML 1.1's words (true, yes, on, y and their opposites).
type Bool struct {
	Value bool
	Set   bool
	Pos   diag.Pos
}

// Int is an integer in any of YAML 1.1's bases.
type Int struct {
	Value int
	Set   bool
	Pos   diag.Pos
}

// Float is a number.
type Float struct {
	Value float64
	Set   bool
	Pos   diag.Pos
}

// List is a list of strings. A null list has Set false; an empty one is set.
type List struct {
	Items []Str
	Set   bool
	Pos   diag.Pos
}

// Map is a map of strings in the order of the file.
type Map struct {
	Items []KeyValue
	Set   bool
	Pos   diag.Pos
}

// KeyValue is one entry of a Map. Pos is the key's.
type KeyValue struct {
	Key   string
	Value string
	Pos   diag.Pos
}

// AnyMap is free-form data (vars).
type AnyMap struct {
	Value map[string]any
	Pos   diag.Pos
}
