package topology

import "github.com/c9s-lab/c9s/pkg/diag"

// Diagnostics of reading a topology file.
const (
	CodeSyntax       diag.Code = "yaml-syntax"
	CodeUnknownField diag.Code = "unknown-field"
	CodeDuplicateKey diag.Code = "duplicate-key"
	CodeWrongType    diag.Code = "wrong-type"
	CodeBadValue     diag.Code = "bad-value"
	CodeMissingField diag.Code = "missing-field"
	CodeBadEndpoint  diag.Code = "bad-endpoint"
	CodeTooLarge     diag.Code = "too-large"
	CodeTemplate     diag.Code = "template"
	CodeNoValue      diag.Code = "template-no-value"
	CodeTemplateRows diag.Code = "template-lines"
	CodeEnv          diag.Code = "env-expansion"
	CodeDocuments    diag.Code = "several-documents"
	CodeSource       diag.Code = "topology-source"
)

// Codes describes each diagnostic of this package.
func Codes() map[diag.Code]string {
	return map[diag.Code]string{
		CodeSyntax:       "the file is not well-formed YAML",
		CodeUnknownField: "a key that containerlab does not know",
		CodeDuplicateKey: "a key is written twice in one mapping",
		CodeWrongType:    "a value has the wrong type",
		CodeBadValue:     "a value is none of those that the field accepts",
		CodeMissingField: "a field that must be there is missing",
		CodeBadEndpoint:  "an endpoint is not node:interface",
		CodeTooLarge:     "the file unfolds to more than c9s reads",
		CodeTemplate:     "the topology's Go template cannot be executed",
		CodeNoValue:      "a variable of the topology's template has no value",
		CodeTemplateRows: "lines are those of the template's output",
		CodeEnv:          "an environment reference cannot be expanded",
		CodeDocuments:    "the file has more than one YAML document; only the first is read",
		CodeSource:       "the topology file cannot be found or read",
	}
}
