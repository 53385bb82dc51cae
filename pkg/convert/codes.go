package convert

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of rewriting a topology.
var (
	CodeByHand = diag.Declare("convert-by-hand", diag.Explanation{Stage: diag.StageReading,
		Text:   "\"c9s convert\" cannot rewrite a part of the topology",
		Cause:  "The old form has no counterpart at the place where it is written, such as for nodes of several kinds.",
		Remedy: "Rewrite the part yourself."})
	CodeChanged = diag.Declare("convert-changed", diag.Explanation{Stage: diag.StageReading,
		Text:   "\"c9s convert\" changes the lab a little",
		Cause:  "The new release has the setting for the whole node only.",
		Remedy: "Nothing."})
	CodeDropped = diag.Declare("convert-dropped", diag.Explanation{Stage: diag.StageReading,
		Text:   "\"c9s convert\" removes something that had no effect",
		Cause:  "The new release rejects it.",
		Remedy: "Nothing."})
)
