package apicheck

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of the API server's rules.
var (
	CodeName = declare("object-name-illegal", "the API does not accept the name of an object",
		"Names are DNS labels or subdomains.",
		"Rename the node or lab that the object belongs to.")
	CodeLabel = declare("label-illegal", "the API does not accept a label or an annotation",
		"Keys and label values are limited in characters and length, annotations in total size.",
		"Correct the label or annotation of the policy or overlay.")
	CodeSize = declare("object-too-large", "an object is larger than 1 MiB",
		"etcd limits the size of an object.",
		"Make the files smaller, or put them into the image or on a volume.")
	CodeApplySize = declare("object-needs-server-side-apply", "an object is too large for client-side apply",
		"kubectl apply copies the object into an annotation, which is limited to 256 KiB.",
		"Use c9s deploy or kubectl apply --server-side.")
	CodeDuplicate = declare("object-twice", "two objects have the same kind and name",
		"Two nodes map to the same name, or an overlay adds an object that exists.",
		"Rename one of them.")
	CodeReference = declare("reference-missing", "an object refers to something that does not exist",
		"A ConfigMap, Secret, claim, ServiceAccount or volume is missing.",
		"Add it, or correct the name in the overlay.")
	CodeMountPath = declare("mount-path-illegal", "the API does not accept a mount path, or it is used twice",
		"Mount paths are absolute, unique in a container, and contain no colon.",
		"Correct the target of the bind or volume.")
	CodePort = declare("port-illegal", "the API does not accept a port, or it is used twice",
		"Ports are 1 to 65535 with a unique name and number per protocol.",
		"Correct the port in the topology or policy.")
	CodeContainerName = declare("container-name-illegal", "the API does not accept the name of a container, or it is used twice",
		"Container names are DNS labels, unique in a Pod.",
		"Correct the name in the overlay.")
	CodeEnvName = declare("env-name-illegal", "the API does not accept the name or value of an environment variable",
		"Names cannot contain \"=\", and values cannot contain zero bytes.",
		"Correct the variable in env.")
	CodeSelector = declare("selector-mismatch", "a selector is illegal or does not match its Pods",
		"The labels of the Pod template and the selector differ, or an affinity of the policy is incomplete.",
		"Correct the policy or overlay.")
	CodeProbe = declare("probe-illegal", "the API does not accept a probe",
		"A probe has exactly one handler, and a command is not empty.",
		"Correct the probe in the policy or overlay.")
	CodeResources = declare("resources-illegal", "the API does not accept requests or limits",
		"A quantity is negative, a request exceeds its limit, or the resource is unknown.",
		"Correct the resources in the policy.")
	CodeKey = declare("data-key-illegal", "the API does not accept a key of a ConfigMap or Secret",
		"Keys consist of letters, digits, \"-\", \"_\" and \".\".",
		"Correct the key in the overlay.")
	CodeHostname = declare("hostname-illegal", "the API does not accept the hostname of a Pod",
		"The hostname is a DNS label.",
		"Correct it in the overlay.")
	CodeImage = declare("image-illegal", "an image is not a reference",
		"A runtime cannot parse the reference: it is empty, has white space, or upper case in the name.",
		"Write [registry/]name[:tag], or map the image with --map-image.")
	CodeVolume = declare("volume-illegal", "the API does not accept a volume, or its name is used twice",
		"Volume names are DNS labels, unique in a Pod.",
		"Correct the volume in the overlay.")
	CodeEncode = declare("object-not-encodable", "an object cannot be encoded as JSON",
		"c9s or an overlay produced an invalid object.",
		"Report this to c9s.")
	CodePIDMode = declare("pid-mode-unsupported", "a node joins processes that its Pod cannot reach",
		"Only the processes of the worker and of the own Pod can be shared, and only one of the two.",
		"Use pid-mode host, or share a Pod with network-mode container:<node>.")
	CodeSecurityOpt = declare("security-opt-unsupported", "a security option has no equivalent in Kubernetes",
		"Kubernetes supports a part of the security options of Docker.",
		"Remove the option, or set securityContext in an overlay.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageRendering, Text: text, Cause: cause, Remedy: remedy})
}
