package alloc

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of allocating from pools.
var (
	CodeExhausted = declare("pool-exhausted", "a pool has fewer values than the lab needs",
		"The subnet or range is too small, or retained values fill it.",
		"Use a larger subnet, or pass --recycle to release the values of removed nodes.")
	CodeDuplicate = declare("duplicate-value", "two nodes or links request the same value",
		"Values of a pool are unique in a lab.",
		"Change one of the two, or leave it out to have it allocated.")
	CodeTakenOver = declare("value-taken-over", "a value goes from one node or link to another",
		"The topology requests a value that another node or link was allocated before. That one gets a new value, and its device restarts.",
		"Request a value that is free, or accept that the other device changes.")
	CodeLeftPool = declare("value-left-pool", "an earlier value is no longer in its pool",
		"The subnet or range was changed, so that it does not contain a value that a node has.",
		"Nothing, if the change was meant: the node gets a new value, and its device restarts.")
	CodeOutside = declare("value-outside-pool", "a requested value is not in its pool",
		"The address is outside the management subnet, or is its gateway.",
		"Request a value of the pool, or change the pool.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageAllocating, Text: text, Cause: cause, Remedy: remedy})
}
