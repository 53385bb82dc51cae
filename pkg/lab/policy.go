package lab

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// Policy is the Kubernetes side of a node, as the profiles of c9s.yaml set it.
// The zero value is the default for everything.
type Policy struct {
	Expose       *Expose                      `json:"expose,omitempty"`
	Resources    *corev1.ResourceRequirements `json:"resources,omitempty"`
	NodeSelector map[string]string            `json:"nodeSelector,omitempty"`
	Affinity     *corev1.Affinity             `json:"affinity,omitempty"`
	Tolerations  []corev1.Toleration          `json:"tolerations,omitempty"`
	Persistence  *Persistence                 `json:"persistence,omitempty"`
	// ImagePullPolicy is Always, IfNotPresent or Never.
	ImagePullPolicy  string        `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets []string      `json:"imagePullSecrets,omitempty"`
	Readiness        *corev1.Probe `json:"readiness,omitempty"`
	Liveness         *corev1.Probe `json:"liveness,omitempty"`
	Startup          *corev1.Probe `json:"startup,omitempty"`
	// NoReadiness leaves the readiness probe out, that of the kind too.
	NoReadiness bool `json:"noReadiness,omitempty"`
	// SSH is a readiness probe that logs in, beside the test of the kind.
	SSH *SSHProbe `json:"ssh,omitempty"`
	// Privileged overrides the kind's need.
	Privileged *bool `json:"privileged,omitempty"`
	// KVM is KVMRequired or KVMOptional, "" for the former.
	KVM string `json:"kvm,omitempty"`
	// SecretFiles are patterns of mount targets to keep in Secrets.
	SecretFiles []string `json:"secretFiles,omitempty"`
	// Files are those that only the cluster holds.
	Files []ClusterFile `json:"files,omitempty"`
	// StrictExec makes a failing exec command fail the node.
	StrictExec *bool `json:"strictExec,omitempty"`
	// DenyTo are the Pods to which the node may open no connections on the management network,
	// DenyFrom those from which it gets none. Both are sorted.
	DenyTo   []string `json:"denyTo,omitempty"`
	DenyFrom []string `json:"denyFrom,omitempty"`
	// External says what the node reaches outside the lab, the longest prefixes first. Other
	// addresses are as Mgmt.ExternalAccess says.
	External []ExternalRule `json:"external,omitempty"`
}

// ExternalRule says whether a node reaches a prefix outside the lab.
type ExternalRule = contract.ExternalRule

// SSHProbe is a login to the management address of a node.
type SSHProbe struct {
	Port     int    `json:"port"`
	Username string `json:"username"`
	// Password is empty if the Secret of the namespace has it, in its key Key.
	Password string   `json:"-"`
	Secret   string   `json:"secret,omitempty"`
	Key      string   `json:"key,omitempty"`
	Pos      diag.Pos `json:"pos"`
}

// ClusterFile is a file or a folder of a node that a Secret or ConfigMap of the lab's
// namespace holds. The kubelet mounts it, so that its contents are unknown when the lab is
// rendered.
type ClusterFile struct {
	// Path is absolute in the node's containers.
	Path string `json:"path"`
	// Either Secret or ConfigMap is set.
	Secret    string `json:"secret,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
	// Key is that of the file, "" for a folder with all keys.
	Key string `json:"key,omitempty"`
	// Mode holds the permission bits of the files.
	Mode uint32   `json:"mode"`
	Pos  diag.Pos `json:"pos"`
}

// What a virtual machine needs of its worker. Without KVM, QEMU emulates the processor, which
// is many times slower.
const (
	KVMRequired = "required"
	KVMOptional = "optional"
)

// Expose is the expose Service of a node.
type Expose struct {
	// Type is ClusterIP (default), LoadBalancer, NodePort, Headless or None.
	Type string `json:"type,omitempty"`
	// Ports replaces the default list of management ports if it is not nil.
	Ports []Port `json:"ports,omitempty"`
	// UseMgmtAddress asks a load balancer for the management address.
	UseMgmtAddress bool `json:"useMgmtAddress,omitempty"`
	// Shared puts the node behind the lab's one load balancer, from Node.SharedPort on.
	Shared bool `json:"shared,omitempty"`
}

// Persistence is a PersistentVolumeClaim for the kind's persistent folders.
type Persistence struct {
	Enabled      bool   `json:"enabled"`
	Size         string `json:"size,omitempty"`
	StorageClass string `json:"storageClass,omitempty"`
}
