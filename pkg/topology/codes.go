package topology

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of reading a topology file.
var (
	CodeSyntax = declare("yaml-syntax", "the file is not well-formed YAML",
		"The YAML parser stopped at this position, often because of indentation, an unclosed quote or a tab.",
		"Correct the line, or the line above it.")
	CodeUnknownField = declare("unknown-field", "containerlab does not know the key",
		"The key is misspelt, in the wrong section, or newer than the containerlab version that c9s follows.",
		"Use the key that the hint suggests; \"c9s explain\" lists every field.")
	CodeDuplicateKey = declare("duplicate-key", "a key occurs twice in one mapping",
		"YAML mappings have unique keys. Most parsers would silently keep the last value.",
		"Remove one of the two, or merge them.")
	CodeWrongType = declare("wrong-type", "a value has the wrong type",
		"The field takes another type: a list in place of a word, or a mapping in place of a number, for example.",
		"Write the value as \"c9s explain FIELD\" shows.")
	CodeBadValue = declare("bad-value", "the field does not accept the value",
		"The value is none of those that containerlab accepts for the field.",
		"Use one of the values in the hint.")
	CodeMissingField = declare("missing-field", "a required field is missing",
		"Containerlab requires the field here.",
		"Add the field.")
	CodeBadEndpoint = declare("bad-endpoint", "an endpoint is not node:interface",
		"An endpoint names a node and an interface, separated by a colon.",
		"Write \"node:interface\", such as \"srl1:e1-1\".")
	CodeTooLarge = declare("too-large", "the file expands to more than c9s reads",
		"Aliases, merges or a template expand to a document that is larger than the limit.",
		"Use fewer aliases, or split the lab.")
	CodeTemplate = declare("template", "the Go template of the topology fails",
		"The template does not parse, or a function in it returned an error.",
		"Correct the template at the line in the message.")
	CodeNoValue = declare("template-no-value", "a template variable has no value",
		"The template prints a variable that no variables file sets, and writes \"<no value>\" in its place.",
		"Set the variable in a variables file (--vars), or give it a default.")
	CodeTemplateRows = declare("template-lines", "line numbers refer to the output of the template",
		"The topology is a template. Diagnostics can only point at its output.",
		"Search the template for the text in the message.")
	CodeEnv = declare("env-expansion", "an environment reference cannot be expanded",
		"A ${NAME} reference is malformed, or names a required variable that is not set.",
		"Set the variable, or write ${NAME:-default}.")
	CodeEnvWithheld = declare("env-withheld", "a fetched topology uses an environment variable that it does not get",
		"A topology from a URL or a Git repository sees no environment variables.",
		"Pass --env NAME if the topology may have the variable, or --trust.")
	CodeDocuments = declare("several-documents", "the file has several YAML documents",
		"A topology is one YAML document. Only the first one is read.",
		"Remove the documents after the first \"---\".")
	CodeSource = declare("topology-source", "the topology cannot be found or read",
		"The file, folder, URL or repository does not exist, is not readable, or holds no topology.",
		"Check the name, or pass the file with --topo.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageReading, Text: text, Cause: cause, Remedy: remedy})
}
