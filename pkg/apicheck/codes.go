package apicheck

import (
	"maps"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// Codes of the API server's rules.
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
	// CodePIDMode: the process namespace of something outside the Pod.
	CodePIDMode diag.Code = "pid-mode-unsupported"
	// CodeSecurityOpt: a security option without a counterpart.
	CodeSecurityOpt diag.Code = "security-opt-unsupported"
)

var codes = map[diag.Code]string{
	CodeName:          "the API does not accept an object's name",
	CodeLabel:         "the API does not accept a label or an annotation",
	CodeSize:          "an object is larger than 1 MiB",
	CodeApplySize:     "an object is too large for kubectl's client-side apply",
	CodeDuplicate:     "two objects have the same kind and name",
	CodeReference:     "an object refers to something that does not exist",
	CodeMountPath:     "the API does not accept a mount path, or it is used twice",
	CodePort:          "the API does not accept a port, or it is used twice",
	CodeContainerName: "the API does not accept a container's name, or it is used twice",
	CodeEnvName:       "the API does not accept the name of an environment variable",
	CodeSelector:      "a selector does not match its Pods",
	CodeProbe:         "the API does not accept a probe",
	CodeResources:     "the API does not accept requests or limits",
	CodeKey:           "the API does not accept a key of a ConfigMap or Secret",
	CodeHostname:      "the API does not accept a Pod's hostname",
	CodeImage:         "an image reference is empty or has white space",
	CodeVolume:        "the API does not accept a volume, or its name is used twice",
	CodeEncode:        "an object cannot be written as JSON: a fault of c9s or of an overlay",
	CodePIDMode:       "the process namespace of another Pod cannot be joined",
	CodeSecurityOpt:   "the security option has no counterpart in Kubernetes and is ignored",
}

// Codes returns every code of this package with what it means.
func Codes() map[diag.Code]string { return maps.Clone(codes) }
