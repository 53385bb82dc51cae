package diag

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Code is the stable name of a kind of diagnostic ("unknown-field"). Packages
// declare their codes with Declare, each code once.
type Code string

// Stage is the part of a run that reports a code.
type Stage int

// The stages in their order.
const (
	StageReading Stage = iota
	StageCompiling
	StageAllocating
	StageFabric
	StagePolicy
	StagePlanning
	StageRendering
	StageImages
	StageTesting
)

// String returns the stage's heading.
func (s Stage) String() string {
	return [...]string{"Reading the topology", "Compiling", "Allocating", "The fabric file", "The policy file", "Planning", "Rendering", "Images", "Testing"}[s]
}

// Explanation describes a code.
type Explanation struct {
	Code  Code
	Stage Stage
	// Text describes the problem as a clause: "a value has the wrong type".
	Text string
	// Cause says why, and Remedy what to do, in whole sentences.
	Cause, Remedy string
}

// explanations holds every declared code. Only package initialisation writes to it.
var explanations = map[Code]Explanation{}

// Declare adds a code with its explanation, for a package variable. It panics if the
// code exists or if a part of the explanation is missing.
func Declare(code Code, e Explanation) Code {
	if _, twice := explanations[code]; twice || code == "" || e.Text == "" || e.Cause == "" || e.Remedy == "" {
		panic(fmt.Sprintf("code %q is declared twice or not explained", code))
	}
	e.Code = code
	explanations[code] = e
	return code
}

// Explain returns the explanation of a code.
func Explain(code Code) (Explanation, bool) {
	e, ok := explanations[code]
	return e, ok
}

// Explanations returns all declared codes, sorted by stage and code.
func Explanations() []Explanation {
	return slices.SortedFunc(maps.Values(explanations), func(a, b Explanation) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Code, b.Code))
	})
}
