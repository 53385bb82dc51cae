package plan

import (
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// The codes of what planning tells. Codes gives their descriptions.
const (
	// CodeKindUnknown is a node whose kind is not in the catalogue.
	CodeKindUnknown diag.Code = "kind-unknown"
	// CodeKindRefused is a kind that cannot run in a Pod.
	CodeKindRefused diag.Code = "kind-refused"
	// CodeKindIncomplete is what containerlab does for a kind and the built-in
	// planner does not.
	CodeKindIncomplete diag.Code = "kind-incomplete"
	// CodeKindData is an entry of the catalogue that does not fit the node.
	CodeKindData diag.Code = "kind-data"
	// CodeNodeType is a type that the kind does not have.
	CodeNodeType diag.Code = "node-type"
	// CodeComponents are cards that the node cannot have.
	CodeComponents diag.Code = "components"
	// CodeStartupConfigIgnored is a startup-config that the kind does not read.
	CodeStartupConfigIgnored diag.Code = "startup-config-ignored"
	// CodeStartupConfigPartial is a startup-config whose being partial or whole
	// does not suit the kind.
	CodeStartupConfigPartial diag.Code = "startup-config-partial"
	// CodeStartupConfigFormat is a startup-config file that the kind cannot read.
	CodeStartupConfigFormat diag.Code = "startup-config-format"
	// CodeStartupConfigTemplate is a startup-config that fails as a template.
	CodeStartupConfigTemplate diag.Code = "startup-config-template"
	// CodeStartupConfigConflict are startup-config options that exclude each other.
	CodeStartupConfigConflict diag.Code = "startup-config-conflict"
	// CodeLicenseRequired is a node without the licence that its kind wants.
	CodeLicenseRequired diag.Code = "license-required"
	// CodeLicenseIgnored is a licence that the kind does not read.
	CodeLicenseIgnored diag.Code = "license-ignored"
	// CodePlannerFailed is a planner program that gave no usable answer.
	CodePlannerFailed diag.Code = "planner-failed"
	// CodePlannerTimeout is a planner program that did not answer in time.
	CodePlannerTimeout diag.Code = "planner-timeout"
	// CodePlannerVersion is a planner program that speaks another version.
	CodePlannerVersion diag.Code = "planner-version"

	// The codes of planning by containerlab's own hooks.

	// CodeHookFailed is a hook that returned an error or panicked.
	CodeHookFailed diag.Code = "hook-failed"
	// CodeHookComplained is a hook that logged an error and went on.
	CodeHookComplained diag.Code = "hook-complained"
	// CodeHookIncomplete is a kind that goes on to configure the device over the
	// network.
	CodeHookIncomplete diag.Code = "hook-incomplete"
	// CodeHookAssumption is what only a running device can answer.
	CodeHookAssumption diag.Code = "hook-assumption"
	// CodeStartupConfigLost is a startup-config of which nothing is left.
	CodeStartupConfigLost diag.Code = "startup-config-lost"
	// CodeCertificateStandIn is a file with a stand-in for the node's certificate.
	CodeCertificateStandIn diag.Code = "certificate-stand-in"
)

// Codes describes every code that this package and package kinds use.
func Codes() map[diag.Code]string {
	return map[diag.Code]string{
		CodeKindUnknown:           "The kind of a node is not in the catalogue.",
		CodeKindRefused:           "The kind cannot run in a Pod.",
		CodeKindIncomplete:        "Something that containerlab does for the kind is not done.",
		CodeKindData:              "An entry of the kind catalogue does not fit the node.",
		CodeNodeType:              "The kind does not have the type of the node.",
		CodeComponents:            "The node cannot have these cards.",
		CodeStartupConfigIgnored:  "The kind does not read a startup-config.",
		CodeStartupConfigPartial:  "A partial startup-config does not suit the kind, or only a partial one does.",
		CodeStartupConfigFormat:   "The kind cannot read this startup-config file.",
		CodeStartupConfigTemplate: "The startup-config fails as a Go template.",
		CodeStartupConfigConflict: "Startup-config options exclude each other.",
		CodeLicenseRequired:       "The kind wants a licence and the node has none.",
		CodeLicenseIgnored:        "The kind does not read the licence of the node.",
		CodePlannerFailed:         "The planner program gave no usable answer.",
		CodePlannerTimeout:        "The planner program did not answer in time.",
		CodePlannerVersion:        "The planner program speaks another version of the protocol.",
		CodeHookFailed:            "containerlab's own hook for the kind returned an error or panicked.",
		CodeHookComplained:        "containerlab's own hook for the kind logged an error and went on.",
		CodeHookIncomplete:        "containerlab goes on to configure the device over the network after its start, which is not done.",
		CodeHookAssumption:        "What only a running device can answer, as its version, was assumed.",
		CodeStartupConfigLost:     "Nothing of the startup-config is left in what the hooks made of it.",
		CodeCertificateStandIn:    "A generated file holds a stand-in for the node's certificate, which is issued at deploy.",
		kinds.CodeKindFile:        "A file of a kind catalogue cannot be used.",
		kinds.CodeInterfaceName:   "The kind has no interface of this name.",
	}
}
