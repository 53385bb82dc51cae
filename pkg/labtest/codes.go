package labtest

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of a file of tests.
var (
	// CodeTest is for what is wrong whatever the lab.
	CodeTest = declare("test-invalid", "the file of tests has an unknown key or a wrong value",
		"The file does not match its schema.",
		"Correct the key or value; docs/reference/test.md lists the fields.")
	// CodeLab is for what does not fit the lab.
	CodeLab = declare("test-lab", "a check names something that the lab does not have",
		"A node, a link or a protocol of the check is misspelt, or the lab has changed.",
		"Correct the check, or remove it.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageTesting, Text: text, Cause: cause, Remedy: remedy})
}
