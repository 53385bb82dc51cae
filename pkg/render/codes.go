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
	// CodePIDMode: the process namespace of something outside the Pod.
	CodePIDMode diag.Code = "pid-mode-unsupported"
	// CodeHostNetwork: network-mode host and links, or waiting for others, at once.
	CodeHostNetwork diag.Code = "host-network-unsupported"
	// CodeSecurityOpt: a security option without a counterpart.
	CodeSecurityOpt diag.Code = "security-opt-unsupported"
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

// Codes of Check: the API server's own rules.
const (
	// CodeName: a name that the API does not take.
	CodeName diag.Code = "object-name-illegal"
	// CodeLabel: a label or an annotation that the API does not take.
	CodeLabel diag.Code = "label-illegal"
	// CodeSize: an object of over 1 MiB.
	CodeSize diag.Code = "object-too-large"
	// CodeApplySize: an object that client-side apply cannot carry.
	CodeApplySize diag.Code = "object-needs-server-side-apply"
	// CodeDuplicate: two objects with one kind and name.
	CodeDuplicate diag.Code = "object-twice"
	// CodeReference: an object or a volume that is referred to does not exist.
	CodeReference diag.Code = "reference-missing"
	// CodeMountPath: two mounts at one path, or an illegal path.
	CodeMountPath diag.Code = "mount-path-illegal"
	// CodePort: an illegal or doubled port.
	CodePort diag.Code = "port-illegal"
	// CodeContainerName: an illegal or doubled container name.
	CodeContainerName diag.Code = "container-name-illegal"
	// CodeEnvName: an environment variable's name that the API does not take.
	CodeEnvName diag.Code = "env-name-illegal"
	// CodeSelector: a selector that does not find its own Pod.
	CodeSelector diag.Code = "selector-mismatch"
	// CodeProbe: a probe that the API does not take.
	CodeProbe diag.Code = "probe-illegal"
	// CodeResources: requests above limits, or a negative quantity.
	CodeResources diag.Code = "resources-illegal"
	// CodeKey: a key of a ConfigMap or Secret that the API does not take.
	CodeKey diag.Code = "data-key-illegal"
	// CodeHostname: a Pod hostname that the API does not take.
	CodeHostname diag.Code = "hostname-illegal"
	// CodeImage: an image reference with white space or without a name.
	CodeImage diag.Code = "image-illegal"
	// CodeVolume: an illegal or doubled volume.
	CodeVolume diag.Code = "volume-illegal"
	// CodeEncode: an object that cannot be written as JSON.
	CodeEncode diag.Code = "object-not-encodable"
)

var codes = map[diag.Code]string{
	CodePlanMissing:       "there is no plan for a node: a fault of the caller",
	CodeUnknownNode:       "the node that the output is limited to does not exist",
	CodeFileMissing:       "the bytes of a staged file are missing: a fault of compile or of the planner",
	CodeSysctl:            "the sysctl belongs to the whole worker, not to a Pod",
	CodeSysctlConflict:    "nodes that share a Pod want different values of one sysctl",
	CodeUser:              "Kubernetes runs containers under numeric users only",
	CodePIDMode:           "the process namespace of another Pod cannot be joined",
	CodeHostNetwork:       "a node in the worker's network namespace cannot have links or wait for other nodes",
	CodeSecurityOpt:       "the security option has no counterpart in Kubernetes and is ignored",
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
	CodeName:              "the API does not accept an object's name",
	CodeLabel:             "the API does not accept a label or an annotation",
	CodeSize:              "an object is larger than 1 MiB",
	CodeApplySize:         "an object is too large for kubectl's client-side apply",
	CodeDuplicate:         "two objects have the same kind and name",
	CodeReference:         "an object refers to something that does not exist",
	CodeMountPath:         "the API does not accept a mount path, or it is used twice",
	CodePort:              "the API does not accept a port, or it is used twice",
	CodeContainerName:     "the API does not accept a container's name, or it is used twice",
	CodeEnvName:           "the API does not accept the name of an environment variable",
	CodeSelector:          "a selector does not match its Pods",
	CodeProbe:             "the API does not accept a probe",
	CodeResources:         "the API does not accept requests or limits",
	CodeKey:               "the API does not accept a key of a ConfigMap or Secret",
	CodeHostname:          "the API does not accept a Pod's hostname",
	CodeImage:             "an image reference is empty or has white space",
	CodeVolume:            "the API does not accept a volume, or its name is used twice",
	CodeEncode:            "an object cannot be written as JSON: a fault of c9s or of an overlay",
}

// Codes returns every code of this package with what it means.
func Codes() map[diag.Code]string { return maps.Clone(codes) }
