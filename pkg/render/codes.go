package render

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of what render checks about a node.
var (
	CodePlanMissing = declare("plan-missing", "a node has no plan",
		"The caller of render passed no plan for the node.",
		"Report this to c9s.")
	CodeUnknownNode = declare("unknown-only-node", "--only names a node that does not exist",
		"The name is misspelt.",
		"Use a node of the topology, in either spelling.")
	CodeFileMissing = declare("staged-file-missing", "the contents of a staged file are missing",
		"The lab does not contain the bytes that a plan refers to.",
		"Report this to c9s.")
	CodeSysctl = declare("sysctl-not-namespaced", "a sysctl belongs to the whole worker",
		"Only sysctls of a network, IPC or UTS namespace belong to a Pod.",
		"Set it on the workers, or remove it.")
	CodeSysctlConflict = declare("sysctl-conflict", "nodes that share a Pod set a sysctl to different values",
		"The nodes share one network namespace.",
		"Give them the same value.")
	CodeUser = declare("user-not-numeric", "a user is not numeric",
		"Kubernetes runs containers as numeric users only; names are resolved in the image.",
		"Write the uid, and the gid after a colon.")
	CodeHostNetwork = declare("host-network-unsupported", "a node in the network namespace of the worker has links or waits for other nodes",
		"Links and waits need the sidecar, and such a Pod has none.",
		"Remove network-mode host, or link the other node to host:<interface>.")
	CodeTmpfsOption = declare("tmpfs-option-ignored", "a tmpfs option has no equivalent in Kubernetes and is ignored",
		"A Pod can only limit the size of a tmpfs.",
		"Keep size= alone.")
	CodeDevice = declare("device-needs-privileged", "an unprivileged container may not be able to open the device",
		"The device cgroup of most workers admits only privileged containers.",
		"Set privileged: true, or request the device from a device plugin.")
	CodeVolumeEmpty = declare("volume-starts-empty", "a volume starts empty",
		"Docker copies the files of the image into a new volume; Kubernetes does not.",
		"Bind the files that the device needs.")
	CodeWaitExit = declare("wait-for-exit-unsupported", "a node waits for the end of another node",
		"Kubernetes restarts the container when it ends.",
		"Wait for the stage healthy or configure.")
	CodeStageExec = declare("stage-exec-unsupported", "a command of a stage has no container to run in",
		"The node has no container, or the stage is exit.",
		"Remove the command.")
	CodePolicyConflict = declare("policy-conflict", "nodes that share a Pod have contradicting policies",
		"A Pod has one node selector and one affinity.",
		"Give all nodes of the Pod the same policy.")
	CodeQuantity = declare("bad-quantity", "a size is not a Kubernetes quantity",
		"Quantities are numbers with Ki, Mi, Gi and so on.",
		"Write 10Gi, for example.")
	CodeAlias = declare("alias-without-service", "an alias gets no Service",
		"The alias is not a DNS label, or another node has the name. It still resolves in the nodes of the lab.",
		"Rename the alias, if it must resolve in the whole cluster.")
	CodeReservedPort = declare("port-reserved", "a published port is one of the ports of the sidecar",
		"The sidecar listens on these ports of the Pod address.",
		"Let the device listen on another port.")
	CodeExposeType = declare("expose-type-unknown", "the type of an expose Service is unknown",
		"The policy sets a type that Kubernetes does not have.",
		"Use ClusterIP, LoadBalancer, NodePort, Headless or None.")
	CodeExposeMany = declare("expose-many", "many nodes have a load balancer or node ports",
		"Each costs something outside the lab: an address, a rule on every worker, or money.",
		"Use one load balancer for the lab (expose: {type: LoadBalancer, shared: true}), or expose fewer nodes or ports.")
	CodeExposeShared = declare("expose-shared", "a node cannot be behind the lab's shared load balancer",
		"A node has a limited range of its ports, and one in the worker's network namespace has none.",
		"Name fewer ports in expose.ports, or expose the node without shared.")
	CodeLabel = declare("label-not-on-pod", "a label of the topology cannot be a label of a Pod",
		"Kubernetes allows fewer characters in labels, and some domains are reserved.",
		"None needed. To select the Pods with kubectl, use letters, digits, \"-\", \"_\" and \".\".")
	CodeInterfaceTwice = declare("interface-name-twice", "two interfaces of a Pod have the same name",
		"Nodes that share a Pod share a network namespace.",
		"Rename one of the interfaces.")
	CodeInterfaceReserved = declare("interface-name-reserved", "an interface has a name that the sidecar uses",
		"lo, eth0 and c9s0 exist in every Pod.",
		"Use another name.")
	CodeLinkEnds = declare("link-ends", "a link does not have two ends",
		"Compile produced an incomplete link.",
		"Report this to c9s.")
	CodeDirectorySize = declare("directory-too-large", "the lab has more nodes than its directory can hold",
		"The directory fills a fixed number of ConfigMaps.",
		"Split the lab over several namespaces.")
	CodeStagedSize = declare("staged-files-large", "very large files are staged through ConfigMaps",
		"etcd stores every staged file.",
		"Put large files into the image or on a volume.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageRendering, Text: text, Cause: cause, Remedy: remedy})
}
