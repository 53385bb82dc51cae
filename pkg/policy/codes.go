package policy

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of the policy file.
var (
	CodeInvalid = declare("policy-invalid", "the policy file has an unknown key or a wrong value",
		"c9s.yaml does not match its schema.",
		"Correct the key or value; docs/reference/policy.md lists the fields.")
	CodeExpression = declare("policy-expression", "a CEL expression of the policy file fails",
		"The expression does not compile, or fails for a node.",
		"Correct the expression; has(...) tests whether a field is set.")
	CodeUnused = declare("policy-unused", "an entry of the policy file matches no node",
		"The match of the profile, segment or rule is misspelt, or the nodes are gone.",
		"Correct the match, or remove the entry.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StagePolicy, Text: text, Cause: cause, Remedy: remedy})
}
