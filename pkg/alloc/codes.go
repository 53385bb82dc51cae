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
	CodeOutside = declare("value-outside-pool", "a requested value is not in its pool",
		"The address is outside the management subnet, or is its gateway.",
		"Request a value of the pool, or change the pool.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageAllocating, Text: text, Cause: cause, Remedy: remedy})
}
