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
		kinds.CodeKindFile:        "A file of a kind catalogue cannot be used.",
		kinds.CodeInterfaceName:   "The kind has no interface of this name.",
	}
}
