package compile

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of compiling a topology.
var (
	CodeNoGit = declare("no-git-repository", "the lab name uses Git variables outside a Git repository",
		"__gitBranch__ and __gitHash__ need a repository; without one both become \"none\".",
		"Render inside a Git repository, or write the name out.")
	CodeBadName = declare("bad-name", "a name contains characters that names cannot have",
		"Containerlab names containers after nodes, and Docker restricts the characters.",
		"Use letters, digits, hyphens, dots and underscores.")
	CodeNameReserved = declare("name-reserved", "a node has a Kubernetes name that the lab itself uses",
		"The objects of the node would replace the objects of the lab.",
		"Rename the node.")
	CodeNameCollision = declare("name-collision", "two nodes get the same name in Kubernetes",
		"Kubernetes names are lower case with hyphens, so that R_1 and r-1 become the same name.",
		"Rename one of the two nodes.")
	CodeNameMapped = declare("name-mapped", "node names differ in Kubernetes",
		"Kubernetes allows fewer characters in names than containerlab does.",
		"Nothing; c9s accepts both spellings.")
	CodeFieldIgnored = declare("field-ignored", "a field has no effect in a cluster",
		"The field concerns the container host, which a cluster does not have.",
		"Nothing, or remove the field.")
	CodeFieldRefused = declare("field-refused", "a field requires something that a Pod cannot have",
		"The field changes how the lab behaves, and Kubernetes offers no equivalent.",
		"Follow the hint, or remove the field.")
	CodeDeprecated = declare("field-deprecated", "a field has an old name",
		"Containerlab renamed the field and still accepts the old name.",
		"Use the new name.")
	CodeRelease = declare("containerlab-release", "the chosen release of containerlab does not accept the topology (--for)",
		"Containerlab 0.80 and 0.81 added keys and kinds, and removed old forms.",
		"Follow the hint, or rewrite the file for a newer release with \"c9s convert\".")
	CodeNoKind = declare("kind-missing", "a node has no kind",
		"Neither the node nor its group nor the defaults set a kind.",
		"Set kind on the node or in topology.defaults.")
	CodeUnknownGroup = declare("group-unknown", "a node names a group that the file does not define",
		"The group is misspelt or missing.",
		"Define the group in topology.groups, or correct its name.")
	CodeNoImage = declare("image-missing", "a node has no image",
		"The kind has no default image, and neither the node nor its group nor the defaults set one.",
		"Set image on the node, its kind or in topology.defaults.")
	CodeImageVariable = declare("image-variable-unset", "an image uses an environment variable that is not set",
		"The reference would have an empty part.",
		"Set the variable, or write ${NAME:-default}.")
	CodeBadAddress = declare("bad-address", "an address or prefix is malformed or does not fit",
		"The value is not an IP address or prefix, or is outside its subnet.",
		"Correct the value.")
	CodeMgmtSubnet = declare("mgmt-subnet-assumed", "the management subnet is derived from the addresses of the nodes",
		"The nodes have management addresses, and the file sets no management subnet.",
		"Set mgmt.ipv4-subnet or mgmt.ipv6-subnet.")
	CodeMgmtGrown = declare("mgmt-subnet-grown", "the lab is larger than the default management subnet",
		"172.20.20.0/24 has room for 253 nodes. The lab has more, and the file sets no subnet.",
		"None needed. To choose another subnet, set mgmt.ipv4-subnet.")
	CodeSegmentName = declare("segment-name", "a segment has the name of a node",
		"A segment becomes a bridge node of the lab, and two nodes cannot have one name.",
		"Rename the segment in c9s.yaml, or the node.")
	CodeSegmentSubnet = declare("segment-subnet", "the subnet of a segment overlaps the management network",
		"Members would have the same subnet on two interfaces.",
		"Choose another subnet for the segment, or for mgmt.")
	CodeSegmentGateway = declare("segment-gateway", "the gateway of a segment cannot have an address",
		"The gateway is a bridge or the host, which have no interfaces of their own, or another node of the segment has its address.",
		"Name a node with a container as the gateway, or reserve an address only; change the other node's address.")
	CodeSaved = declare("saved-configurations", "nodes have configurations that c9s save wrote",
		"The folder configs next to the topology has files of nodes. They are used only with --saved.",
		"None needed. Use --saved to start the nodes with them, or delete the files.")
	CodeSavedDiffers = declare("saved-differs", "a node starts with a saved configuration that differs from the declared one",
		"The saved file is used to the letter. It does not have what the topology's file got since, and the other way round.",
		"None needed. To use the topology's file, delete the saved one, or deploy without --saved.")
	CodeMgmtNetwork = declare("mgmt-network", "a Pod cannot have the management network",
		"A Pod has one management interface, so that a lab has one management network.",
		"Keep one network under mgmt, and connect nodes to others by links to a bridge.")
	CodeBadBind = declare("bad-bind", "a bind is not source:target[:mode]",
		"The bind is not in the syntax of docker run -v.",
		"Write source:target, with :ro for read-only.")
	CodeBadVolume = declare("bad-volume", "a volume is not [name:]target[:options]",
		"The volume is not in the syntax of docker run -v.",
		"Write name:target or an absolute target.")
	CodeBadPort = declare("bad-port", "a port is not in the syntax of Docker",
		"The port is not [host:]container[/protocol].",
		"Write 8080:80 or 161:161/udp, for example.")
	CodeBadCommand = declare("bad-command", "a command cannot be split into words",
		"A quote is not closed.",
		"Close the quote.")
	CodeBadSize = declare("bad-size", "a size is not a number with a unit",
		"Sizes are numbers with b, k, m or g.",
		"Write 2g or 512m, for example.")
	CodeBadDuration = declare("bad-duration", "a duration is not a number with a unit",
		"Durations are numbers with s, m or h, as Go has them.",
		"Write 30s or 5m, for example.")
	CodeOutOfRange = declare("out-of-range", "a number is outside its range",
		"The field accepts a limited range.",
		"Use a number in the range of the message.")
	CodeFileMissing = declare("file-missing", "a file that the topology names does not exist",
		"The path is relative to the topology file and leads nowhere.",
		"Create the file, correct the path, or pass --map-file or --allow-missing.")
	CodeFilePlaceholder = declare("file-placeholder", "a placeholder replaces a missing file or image",
		"--allow-missing was given.",
		"Provide the file or image before you deploy.")
	CodeFileGenerated = declare("file-generated", "a file that containerlab generates is empty, or a certificate of the lab's CA",
		"Containerlab writes the file on its host while it deploys. Certificates are issued when c9s deploys the lab.",
		"Nothing, if the device does not need its contents.")
	CodeFileUnreadable = declare("file-unreadable", "a file exists and cannot be read",
		"Permissions, or a folder in place of a file.",
		"Make the file readable.")
	CodeLinkOutside = declare("symlink-outside", "a symbolic link of a staged folder points outside the folder",
		"The target would not exist in the device.",
		"Copy the file into the folder.")
	CodeWorkerPath = declare("worker-path", "a path of the worker is mounted read-only",
		"The bind names a path of the machine that the device runs on, such as /lib/modules.",
		"Nothing, if each worker has the path.")
	CodeSocket = declare("engine-socket", "a node requires the socket of the container engine",
		"A Pod does not control the container engine of its worker.",
		"Remove the bind.")
	CodeWholeDisk = declare("bind-root", "a bind names the root of a file system",
		"The bind would give the node every file of the machine.",
		"Name the folder that the node needs.")
	CodeFileTooLarge = declare("file-too-large", "a file is larger than c9s stages",
		"Files travel in ConfigMaps and Secrets, which etcd stores.",
		"Put the file into the image or on a volume.")
	CodeNotAdopted = declare("not-adopted", "a node does not keep the address that --adopt found",
		"The address is not in the management subnet, is written for another node, or was allocated by an earlier render.",
		"Set the address of the node, or the management subnet, in the topology.")
	CodeHostPort = declare("host-port", "the host side of a port has no effect in a cluster",
		"A Service publishes the container side of the port.",
		"Nothing, or remove the host side.")
	CodeUnknownNode = declare("node-unknown", "a node is named that the file does not define",
		"A link, stage or network-mode names a node that does not exist.",
		"Define the node, or correct the name.")
	CodeNetworkMode = declare("network-mode", "a Pod cannot have the network-mode",
		"Only the modes of a Pod are possible: its own network, the network of another node, host and none.",
		"Use container:<node>, host or none.")
	CodeCycle = declare("dependency-cycle", "nodes wait for each other in a cycle",
		"None of the nodes could ever start.",
		"Remove one of the dependencies.")
	CodePodWait = declare("pod-wait", "a node waits for another one of its Pod before it starts",
		"Nodes that share a network (network-mode: container:X) share a Pod, whose containers start together.",
		"Wait in the stage configure, or give the nodes networks of their own.")
	CodePodDelay = declare("pod-delay", "a startup-delay delays several nodes",
		"Nodes that share a network (network-mode: container:X) share a Pod, whose containers start together.",
		"Give the nodes networks of their own, or let the command of the container sleep.")
	CodeShared = declare("shared-files", "nodes of several Pods bind the same folder or volume",
		"containerlab mounts one folder of the host for all of them; in a cluster each Pod has its own copy.",
		"Bind it read-only if the nodes only read it; otherwise copy files, or name a ReadWriteMany claim for volumes in c9s.yaml (shared-claim).")
	CodeHostExec = declare("stage-exec-host", "a stage runs a command on the container host",
		"A cluster has no container host to run commands on.",
		"Run the command in the container (target: container).")
	CodeDuplicateEnd = declare("endpoint-duplicate", "two links use the same interface",
		"An interface has one peer.",
		"Give one of the links another interface.")
	CodeBadLink = declare("bad-link", "a link is incomplete or contradicts itself",
		"The link lacks an endpoint, or has fields that its type does not take.",
		"Correct the link; \"c9s explain link.type\" lists the types.")
	CodeLinkRefused = declare("link-refused", "a Pod cannot have the link",
		"The link requires something of the container host.",
		"Follow the hint, or remove the link.")
	CodeWorkerInterface = declare("worker-interface", "a link requires an interface of the worker",
		"host and macvlan links connect to an interface of the machine that the Pod runs on.",
		"Pin the node to workers that have the interface (nodeSelector in the policy).")
	CodeMapUnused = declare("map-file-unused", "the topology does not name a file of --map-file",
		"FROM of --map-file FROM=TO must be written as in the topology.",
		"Correct FROM.")
	CodeFileOutside = declare("file-outside", "a fetched topology names a file that was not fetched with it",
		"A topology from a URL or a Git repository reads only the files of its repository.",
		"Pass --map-file FROM=FILE if the topology may have the file, or --trust.")
	CodeFetch = declare("fetch", "a URL cannot be fetched",
		"The server does not answer, or answers with an error, or a fetched topology names a private address.",
		"Check the URL, or download the file.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageCompiling, Text: text, Cause: cause, Remedy: remedy})
}
