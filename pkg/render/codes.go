package render

import (
	"maps"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// Codes of what render alone can know about a node.
const (
	// CodePlanMissing: the caller gave no plan for a node.
	CodePlanMissing diag.Code = "plan-missing"
	// CodeUnknownNode: --only names no node of the lab.
	CodeUnknownNode diag.Code = "unknown-only-node"
	// CodeFileMissing: a staged file's bytes are not in the lab.
	CodeFileMissing diag.Code = "staged-file-missing"
	// CodeSysctl: a sysctl of the whole worker.
	CodeSysctl diag.Code = "sysctl-not-namespaced"
	// CodeSysctlConflict: two nodes of a Pod want different values.
	CodeSysctlConflict diag.Code = "sysctl-conflict"
	// CodeUser: a user by name, where Kubernetes takes numbers.
	CodeUser diag.Code = "user-not-numeric"
	// CodeHostNetwork: network-mode host and links, or waiting for others, at once.
	CodeHostNetwork diag.Code = "host-network-unsupported"
	// CodeTmpfsOption: a tmpfs option without a counterpart.
	CodeTmpfsOption diag.Code = "tmpfs-option-ignored"
	// CodeDevice: a device that an unprivileged container may not open.
	CodeDevice diag.Code = "device-needs-privileged"
	// CodeVolumeEmpty: a volume starts empty here.
	CodeVolumeEmpty diag.Code = "volume-starts-empty"
	// CodeWaitExit: waiting for a node's end.
	CodeWaitExit diag.Code = "wait-for-exit-unsupported"
	// CodeStageExec: a stage's command that has nowhere to run.
	CodeStageExec diag.Code = "stage-exec-unsupported"
	// CodePolicyConflict: nodes that share a Pod with different policies.
	CodePolicyConflict diag.Code = "policy-conflict"
	// CodeQuantity: a size that Kubernetes does not understand.
	CodeQuantity diag.Code = "bad-quantity"
	// CodeAlias: an alias that cannot be a Service.
	CodeAlias diag.Code = "alias-without-service"
	// CodeReservedPort: a published port that c9s has itself.
	CodeReservedPort diag.Code = "port-reserved"
	// CodeExposeType: an unknown type of expose Service.
	CodeExposeType diag.Code = "expose-type-unknown"
	// CodeInterfaceTwice: two interfaces of a Pod with one name.
	CodeInterfaceTwice diag.Code = "interface-name-twice"
	// CodeInterfaceReserved: an interface name that c9s has itself.
	CodeInterfaceReserved diag.Code = "interface-name-reserved"
	// CodeLinkEnds: a link with a wrong number of ends.
	CodeLinkEnds diag.Code = "link-ends"
	// CodeDirectorySize: more nodes than the directory holds.
	CodeDirectorySize diag.Code = "directory-too-large"
	// CodeStagedSize: very much is staged for one Pod.
	CodeStagedSize diag.Code = "staged-files-large"
)

var codes = map[diag.Code]string{
	CodePlanMissing:       "there is no plan for a node: a fault of the caller",
	CodeUnknownNode:       "the node that the output is limited to does not exist",
	CodeFileMissing:       "the bytes of a staged file are missing: a fault of compile or of the planner",
	CodeSysctl:            "the sysctl belongs to the whole worker, not to a Pod",
	CodeSysctlConflict:    "nodes that share a Pod want different values of one sysctl",
	CodeUser:              "Kubernetes runs containers under numeric users only",
	CodeHostNetwork:       "a node in the worker's network namespace cannot have links or wait for other nodes",
	CodeTmpfsOption:       "a tmpfs option has no counterpart in Kubernetes and is ignored",
	CodeDevice:            "the worker's device control group keeps an unprivileged container from opening the device",
	CodeVolumeEmpty:       "a volume starts empty; the image's files at its path are not copied into it",
	CodeWaitExit:          "a node's end cannot be waited for: its container is restarted always",
	CodeStageExec:         "a stage's command would run where no container is",
	CodePolicyConflict:    "nodes that share a Pod have policies that exclude each other",
	CodeQuantity:          "a size or amount is not a Kubernetes quantity",
	CodeAlias:             "an alias is not a DNS label or is taken: it resolves inside the lab's nodes only",
	CodeReservedPort:      "the port is one of the sidecar's own and is not published",
	CodeExposeType:        "the type of an expose Service is unknown",
	CodeInterfaceTwice:    "two interfaces in one Pod have the same name",
	CodeInterfaceReserved: "the interface name is one of the sidecar's own",
	CodeLinkEnds:          "a link has not two ends: a fault of compile",
	CodeDirectorySize:     "the lab has more nodes than its directory can hold",
	CodeStagedSize:        "very large files are staged through ConfigMaps",
}

// Codes returns every code of this package with what it means.
func Codes() map[diag.Code]string { return maps.Clone(codes) }
