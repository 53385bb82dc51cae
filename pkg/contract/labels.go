package contract

// Labels. Their values are Kubernetes names; the names as written are in
// annotations.
const (
	// LabelLab, LabelPod and LabelNode name the lab, Pod and node that an object
	// belongs to. Objects of a whole Pod carry LabelNode of the primary node.
	LabelLab  = "c9s.dev/lab"
	LabelPod  = "c9s.dev/pod"
	LabelNode = "c9s.dev/node"
	// LabelKind is the node's kind.
	LabelKind = "c9s.dev/kind"
	// LabelComponent is ComponentNode, ComponentLab, ComponentFiles or ComponentController.
	LabelComponent = "c9s.dev/component"
)

// LabelKVM is a label of workers, "true" if /dev/kvm exists.
const LabelKVM = "c9s.dev/kvm"

// KVMLabels are the labels that say so, by preference: c9s' own, and those of
// node-feature-discovery for Intel's and AMD's processors.
var KVMLabels = []string{LabelKVM, "feature.node.kubernetes.io/cpu-cpuid.VMX", "feature.node.kubernetes.io/cpu-cpuid.SVM"}

// Values of LabelComponent.
const (
	ComponentNode       = "node"
	ComponentLab        = "lab"
	ComponentFiles      = "files"
	ComponentController = "controller"
)

// Annotations.
const (
	// AnnotationSource is the topology file. It has no line: an edit elsewhere in the file
	// changes no object.
	AnnotationSource = "c9s.dev/source"
	// AnnotationPlanner is the planner and its version: "builtin/0.79.0".
	AnnotationPlanner = "c9s.dev/planner"
	// AnnotationVersion is the version of c9s. Only objects of the whole lab
	// carry it.
	AnnotationVersion = "c9s.dev/version"
	// AnnotationLabName and AnnotationNodeName are the names as written. A Pod
	// of several nodes lists them with commas, the primary first.
	AnnotationLabName  = "c9s.dev/lab-name"
	AnnotationNodeName = "c9s.dev/node-name"
	// AnnotationStaged is a digest of all files that are staged for the Pod.
	AnnotationStaged = "c9s.dev/staged"
	// AnnotationLinkApply is how a change of links reaches the device: live,
	// restart or recreate.
	AnnotationLinkApply = "c9s.dev/link-apply-mode"
	// AnnotationContainers on a Pod lists the containers of each of its nodes, in
	// JSON: {"SR1":["sr1-a","sr1-1"]}. A bridge has none.
	AnnotationContainers = "c9s.dev/containers"
	// AnnotationTopologyLabels are the node's labels in the topology, in JSON.
	AnnotationTopologyLabels = "c9s.dev/topology-labels"
	// AnnotationLogins are the logins that the topology gives nodes instead of their kinds',
	// in JSON: {"R1":{"username":"me","password":true}}.
	AnnotationLogins = "c9s.dev/logins"
)

// Login is a node's own login. The password itself is not in the cluster but where the device
// gets it.
type Login struct {
	Username string `json:"username"`
	// Password reports whether the topology gives one too.
	Password bool `json:"password,omitempty"`
}
