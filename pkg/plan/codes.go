package plan

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of planning a node.
var (
	CodeKindIncomplete = declare("kind-incomplete", "c9s does not do everything that containerlab does for the kind",
		"The built-in planner describes a kind as data; some of what containerlab does needs its own code.",
		"Install c9s-planner, which runs the code of containerlab.")
	CodeKindData = declare("kind-data", "an entry of the kind catalogue does not fit the node",
		"A template of the catalogue fails, or names a value that the node does not have.",
		"Correct the entry, if it is yours; otherwise report it.")
	CodeNodeType = declare("node-type", "the kind does not have the type of the node",
		"Types are the variants of a kind.",
		"Use a type that \"c9s kinds KIND\" lists.")
	CodeStartupConfigIgnored = declare("startup-config-ignored", "the kind does not read a startup-config",
		"Containerlab ignores startup-config for the kind.",
		"Remove startup-config, or configure the device with exec.")
	CodeStartupConfigPartial = declare("startup-config-partial", "the kind requires a partial or a full startup-config, and gets the other",
		"A file is partial if its name contains \".partial\". Containerlab applies it to nokia_sros over SSH, which c9s cannot.",
		"Rename the file, or give the full configuration.")
	CodeStartupConfigFormat = declare("startup-config-format", "the kind cannot read the format of the startup-config",
		"The extension of the file does not fit the kind.",
		"Use the format that the message names.")
	CodeStartupConfigTemplate = declare("startup-config-template", "the startup-config fails as a Go template",
		"Containerlab renders startup-configs as templates for the kind.",
		"Correct the template at the line in the message.")
	CodeStartupConfigVariable = declare("startup-config-variable", "a variable in a startup-config is not set",
		"Containerlab expands variables from the environment it runs in, and leaves the name of a variable that is not set.",
		"Set the variable, give it a default (${X:-default}), or write $$ for a dollar.")
	CodeLicenseRequired = declare("license-required", "the kind requires a licence and the node has none",
		"The device does not boot, or stops, without a licence.",
		"Set license on the node or its kind.")
	CodeLicenseIgnored = declare("license-ignored", "the kind does not read a licence",
		"Containerlab ignores license for the kind.",
		"Remove license.")
	CodePlannerFailed = declare("planner-failed", "the planner program gave no usable answer",
		"The program crashed, or wrote something other than an answer.",
		"Run with --planner builtin, and report the message.")
	CodePlannerTimeout = declare("planner-timeout", "the planner program did not answer in time",
		"The hook of the kind hangs, or the machine is overloaded.",
		"Try again, or run with --planner builtin.")
	CodePlannerVersion = declare("planner-version", "the planner program speaks another version of the protocol",
		"c9s and c9s-planner are from different releases.",
		"Install both from the same release.")
	CodeHookFailed = declare("hook-failed", "the hook of the kind returned an error or panicked",
		"Containerlab rejects the node, or its hook needs something that the sandbox does not have.",
		"Correct the node as the message says, or run with --planner builtin.")
	CodeHookComplained = declare("hook-complained", "the hook of the kind logged an error and continued",
		"Containerlab would log the same error.",
		"Read the message; the node may miss a part of its configuration.")
	CodeStartupConfigLost = declare("startup-config-lost", "the hooks made nothing of the startup-config",
		"No file of the plan contains any of the startup-config.",
		"Check that the kind supports startup-config in this form.")
	CodeCertificateStandIn = declare("certificate-stand-in", "the startup-config contains the certificate of the node",
		"A template uses .TLSCert, .TLSKey or .TLSAnchor, and deploy issues the certificate later.",
		"Remove them; the device reads the certificate from a file or a step.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StagePlanning, Text: text, Cause: cause, Remedy: remedy})
}
