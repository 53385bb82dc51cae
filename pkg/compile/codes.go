package compile

import "github.com/c9s-lab/c9s/pkg/diag"

// Diagnostics of compiling a topology.
const (
	CodeNoGit           diag.Code = "no-git-repository"
	CodeBadName         diag.Code = "bad-name"
	CodeNameReserved    diag.Code = "name-reserved"
	CodeNameCollision   diag.Code = "name-collision"
	CodeNameMapped      diag.Code = "name-mapped"
	CodeFieldIgnored    diag.Code = "field-ignored"
	CodeFieldRefused    diag.Code = "field-refused"
	CodeDeprecated      diag.Code = "field-deprecated"
	CodeNoKind          diag.Code = "kind-missing"
	CodeUnknownKind     diag.Code = "kind-unknown"
	CodeKindRefused     diag.Code = "kind-refused"
	CodeUnknownGroup    diag.Code = "group-unknown"
	CodeNoImage         diag.Code = "image-missing"
	CodeImageVariable   diag.Code = "image-variable-unset"
	CodeBadAddress      diag.Code = "bad-address"
	CodeMgmtSubnet      diag.Code = "mgmt-subnet-assumed"
	CodeBadBind         diag.Code = "bad-bind"
	CodeBadVolume       diag.Code = "bad-volume"
	CodeBadPort         diag.Code = "bad-port"
	CodeBadCommand      diag.Code = "bad-command"
	CodeBadSize         diag.Code = "bad-size"
	CodeBadDuration     diag.Code = "bad-duration"
	CodeOutOfRange      diag.Code = "out-of-range"
	CodeFileMissing     diag.Code = "file-missing"
	CodeFilePlaceholder diag.Code = "file-placeholder"
	CodeFileGenerated   diag.Code = "file-generated"
	CodeFileUnreadable  diag.Code = "file-unreadable"
	CodeLinkOutside     diag.Code = "symlink-outside"
	CodeWorkerPath      diag.Code = "worker-path"
	CodeSocket          diag.Code = "engine-socket"
	CodeWholeDisk       diag.Code = "bind-root"
	CodeFileTooLarge    diag.Code = "file-too-large"
	CodeConfigConflict  diag.Code = "startup-config-conflict"
	CodeHostPort        diag.Code = "host-port"
	CodeUnknownNode     diag.Code = "node-unknown"
	CodeNetworkMode     diag.Code = "network-mode"
	CodeCycle           diag.Code = "dependency-cycle"
	CodeHostExec        diag.Code = "stage-exec-host"
	CodeDuplicateEnd    diag.Code = "endpoint-duplicate"
	CodeBadInterface    diag.Code = "interface-name"
	CodeBadLink         diag.Code = "bad-link"
	CodeLinkRefused     diag.Code = "link-refused"
	CodeWorkerInterface diag.Code = "worker-interface"
	CodeMapUnused       diag.Code = "map-file-unused"
	CodeFetch           diag.Code = "fetch"
	CodeComponents      diag.Code = "components"
)

// Codes describes each diagnostic of this package.
func Codes() map[diag.Code]string {
	return map[diag.Code]string{
		CodeNoGit:           "the lab's name uses Git variables outside a Git repository",
		CodeBadName:         "a name has characters that names cannot have",
		CodeNameReserved:    "a node's Kubernetes name is one that the lab itself uses",
		CodeNameCollision:   "two nodes get the same name in Kubernetes",
		CodeNameMapped:      "node names differ in Kubernetes, which has stricter rules",
		CodeFieldIgnored:    "a field is accepted and has no effect in a cluster",
		CodeFieldRefused:    "a field asks for what a Pod cannot have",
		CodeDeprecated:      "a field has an old name",
		CodeNoKind:          "a node has no kind",
		CodeUnknownKind:     "a kind is not in the catalogue",
		CodeKindRefused:     "a kind cannot run in a Pod",
		CodeUnknownGroup:    "a group is named that the file does not define",
		CodeNoImage:         "a node has no image",
		CodeImageVariable:   "an image names an environment variable that is not set",
		CodeBadAddress:      "an address or prefix is malformed or does not fit",
		CodeMgmtSubnet:      "the management subnet is taken from the nodes' addresses",
		CodeBadBind:         "a bind is not source:target[:mode]",
		CodeBadVolume:       "a volume is not [name:]target[:options]",
		CodeBadPort:         "a port is not in Docker's syntax",
		CodeBadCommand:      "a command cannot be split into words",
		CodeBadSize:         "a size is not a number with a unit",
		CodeBadDuration:     "a duration is not a number with a unit",
		CodeOutOfRange:      "a number is outside its range",
		CodeFileMissing:     "a file that the topology names does not exist",
		CodeFilePlaceholder: "a placeholder stands in for a file or image that is missing (--allow-missing)",
		CodeFileGenerated:   "a file that containerlab itself would make is empty here",
		CodeFileUnreadable:  "a file exists and cannot be read",
		CodeLinkOutside:     "a symbolic link of a staged folder leads out of the folder",
		CodeWorkerPath:      "a path of the worker is mounted read-only",
		CodeSocket:          "the container engine's socket is asked for",
		CodeWholeDisk:       "a bind names the root of a file system",
		CodeFileTooLarge:    "a file is larger than c9s stages",
		CodeConfigConflict:  "startup-config settings contradict each other",
		CodeHostPort:        "the host side of a port has no effect in a cluster",
		CodeUnknownNode:     "a node is named that the file does not define",
		CodeNetworkMode:     "a network-mode cannot be had in a Pod",
		CodeCycle:           "nodes wait for each other in a circle",
		CodeHostExec:        "a stage wants to run a command on the container host",
		CodeDuplicateEnd:    "an interface is used by two links",
		CodeBadInterface:    "an interface name is not one of the kind's",
		CodeBadLink:         "a link is incomplete or contradicts itself",
		CodeLinkRefused:     "a link cannot be had in a Pod",
		CodeWorkerInterface: "a link needs an interface of the worker",
		CodeMapUnused:       "a file that --map-file replaces is not named by the topology",
		CodeFetch:           "a URL cannot be fetched",
		CodeComponents:      "components are incomplete or contradict each other",
	}
}
