package scenario

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of a scenario.
var (
	// CodeScenario is for what is wrong whatever the lab.
	CodeScenario = declare("scenario-invalid", "the scenario has an unknown key or a wrong value",
		"The file does not match its schema.",
		"Correct the key or value; docs/reference/scenario.md lists the fields.")
	// CodeLab is for what does not fit the lab.
	CodeLab = declare("scenario-lab", "the scenario names something that the lab does not have",
		"A node, a link or a worker is misspelt, or the lab has changed.",
		"Correct the event, or remove it.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageTesting, Text: text, Cause: cause, Remedy: remedy})
}
