package kinds

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of the kind catalogue, for the stages that check a node against it.
var (
	CodeUnknown = declare("kind-unknown", "a kind is not in the catalogue",
		"The kind is misspelt, or c9s has no data for it.",
		"Use a kind that \"c9s kinds\" lists, or add one with --kinds.")
	CodeRefused = declare("kind-refused", "a kind cannot run in a Pod",
		"The kind requires something that Kubernetes does not offer.",
		"Follow the hint, or use another kind.")
	CodeComponents = declare("components", "components are incomplete or contradict each other",
		"A card lacks its slot or type, uses a slot twice, or does not fit the type of the node.",
		"Give each card its own slot and a type that fits.")
	CodeStartupConfigConflict = declare("startup-config-conflict", "startup-config settings contradict each other",
		"enforce-startup-config, suppress-startup-config and startup-config exclude each other in some combinations.",
		"Keep one of the settings.")
	CodeInterfaceName = declare("interface-name", "the kind has no interface of this name",
		"Each kind accepts its own interface names and aliases.",
		"Use a name that \"c9s kinds KIND\" lists.")
	CodeKey = declare("kind-key", "a kind does not have the key",
		"The key belongs to another kind. containerlab rejects a key that a node inherits and its kind does not have.",
		"Remove the key, or set it where only nodes of its kind inherit it.")
	CodeKindFile = declare("kind-file", "a file of a kind catalogue cannot be used",
		"A file of the --kinds folder does not match the schema of kinds.",
		"Correct the file; docs/reference/kinds.md lists the fields.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StagePlanning, Text: text, Cause: cause, Remedy: remedy})
}

// Reject adds a diagnostic if the kind cannot run in a Pod, and reports whether it did.
// written is the kind as the topology's node writes it.
func (k *Kind) Reject(problems *diag.List, pos diag.Pos, written, node string) bool {
	if k.Refused == "" {
		return false
	}
	problems.Errorf(CodeRefused, pos, k.RefusedHint, "kind %q of node %q cannot run in a Pod: %s", written, node, k.Refused)
	return true
}
