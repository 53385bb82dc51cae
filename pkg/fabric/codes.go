package fabric

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of the fabric file.
var (
	CodeInvalid = declare("fabric-invalid", "the fabric file has an unknown key or a wrong value",
		"fabric.yaml does not match its schema, or its parts contradict each other.",
		"Correct the key or value; docs/reference/fabric.md lists the fields.")
	CodeKind = declare("fabric-kind", "c9s has no fabric configuration for the kind of a member",
		"Configurations are written from a template of each kind, and the kind has none.",
		"Exclude the node from members, or use one of the kinds in docs/reference/fabric.md.")
	CodeUnsupported = declare("fabric-unsupported", "the fabric configuration of a kind does not support a feature",
		"The template of the kind does not have the feature, so the node would not take part in it.",
		"Choose another protocol, or nodes of another kind; docs/reference/fabric.md has the features of each kind.")
	CodeUnknownNode = declare("fabric-node", "the fabric file names a node that the fabric does not have",
		"The name is misspelt, or members does not select the node.",
		"Correct the name, or remove the entry.")
	CodeNoMatch = declare("fabric-no-match", "a selector of the fabric file matches no node",
		"The match is misspelt, or the nodes are not linked as the file expects.",
		"Correct the match, or remove the entry.")
	CodeAddress = declare("fabric-address", "a link or port has an address that the fabric cannot use",
		"The topology sets an address at one end of a fabric link only.",
		"Set the addresses of both ends, or of neither.")
	CodeTwoServices = declare("fabric-port", "a port belongs to two services",
		"The hosts of both services select the node at the far end of the port. Ports are untagged.",
		"Select each host in one service only.")
	CodeOwnConfig = declare("fabric-own-config", "a member keeps its own startup-config",
		"The topology sets a startup-config for the node. The fabric sets only the addresses of its links.",
		"Remove the startup-config, or set \"merge: true\" in the fabric file if the kind takes partial configurations.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageFabric, Text: text, Cause: cause, Remedy: remedy})
}
