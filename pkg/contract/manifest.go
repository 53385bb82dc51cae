package contract

import (
	"fmt"
	"slices"
	"strconv"
)

// ManifestVersion is the version of Manifest in JSON.
const ManifestVersion = "c9s.dev/manifest/v1"

// ManifestFile is the key in a <pod>-files-<digest> ConfigMap.
const ManifestFile = "manifest.json"

// Manifest lists the files and programs that prepare stages for one Pod.
type Manifest struct {
	Version string `json:"version"`
	Lab     string `json:"lab"`
	Pod     string `json:"pod"`
	// Nodes are the Pod's nodes, the primary first.
	Nodes []ManifestNode `json:"nodes"`
	// Volumes are folders that prepare creates in VolumesDir with mode 0777. If the
	// kubelet created them, only root could write to them.
	Volumes []string `json:"volumes,omitempty"`
	// BootPerWorker is how many Pods of the lab may boot their devices at a time on one worker,
	// 0 for any number. The controller grants the turns.
	BootPerWorker int `json:"bootPerWorker,omitempty"`
}

// HasSteps reports whether a program of the Pod has a step.
func (m *Manifest) HasSteps() bool {
	return slices.ContainsFunc(m.Nodes, func(n ManifestNode) bool {
		return slices.ContainsFunc(n.Containers, func(c Container) bool { return len(c.Program.Steps) > 0 })
	})
}

// ManifestNode is one node's folder and programs.
type ManifestNode struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Entries of the node's folder, parents before their contents. A parent that
	// is not listed is created with mode 0755.
	Entries []Entry `json:"entries,omitempty"`
	// External are files that only the cluster holds. The kubelet mounts them.
	External []External `json:"external,omitempty"`
	// Gate holds the conditions for the devices' start.
	Gate Gate `json:"gate,omitzero"`
	// Login is how the sidecar logs in to the node for its readiness probe.
	Login *SSHLogin `json:"login,omitempty"`
	// Containers are the device containers that run a program.
	Containers []Container `json:"containers,omitempty"`
}

// SSHLogin is a login by SSH to the management address of a node.
type SSHLogin struct {
	Port     int    `json:"port"`
	Username string `json:"username"`
	// PasswordFile is a path in the wire container, "" for an empty password.
	PasswordFile string `json:"passwordFile,omitempty"`
}

// Entry is a file, a folder (Dir) or a symbolic link (Link).
type Entry struct {
	// Path is relative to the node's folder, slash-separated, without "..".
	Path string `json:"path"`
	Mode Mode   `json:"mode"`
	UID  int    `json:"uid,omitempty"`
	GID  int    `json:"gid,omitempty"`
	Dir  bool   `json:"dir,omitempty"`
	Link string `json:"link,omitempty"`
	// Digest ("sha256:<hex>") and Size in bytes of the whole file.
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Chunks are the pieces of the file in order, as paths below FilesDir. An
	// empty file has none.
	Chunks []string `json:"chunks,omitempty"`
	// Secret means that the chunks come from a Secret.
	Secret bool `json:"secret,omitempty"`
	// Certificate is "ca.crt", "tls.crt" or "tls.key". Its one chunk exists only if
	// the node's certificate has been issued (Secret <id>-tls); Digest and Size are
	// not known.
	Certificate string `json:"certificate,omitempty"`
	// Seed keeps a file that already exists in the node's folder.
	Seed bool `json:"seed,omitempty"`
}

// DigestUnknown is the digest of what was not there when the lab was rendered.
const DigestUnknown = "unknown"

// External is a file, or a folder without a Key, that a Secret or ConfigMap of the namespace
// holds.
type External struct {
	// Path is absolute in the node's containers.
	Path      string `json:"path"`
	Secret    string `json:"secret,omitempty"`
	ConfigMap string `json:"configMap,omitempty"`
	Key       string `json:"key,omitempty"`
	Mode      Mode   `json:"mode"`
	// Digest is always DigestUnknown.
	Digest string `json:"digest"`
}

// Mode holds permission bits, four octal digits in JSON.
type Mode uint32

// String writes "0644".
func (m Mode) String() string { return fmt.Sprintf("%04o", uint32(m)) }

// MarshalText writes "0644".
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads octal digits.
func (m *Mode) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 8, 12)
	if err != nil {
		return fmt.Errorf("file mode %q: want up to four octal digits", text)
	}
	*m = Mode(n)
	return nil
}
