// Package stage is the contract between render and the two helpers that work
// before and beside a device: prepare, which lays files out, and exec, which
// runs commands in the device's container.
package stage

import (
	"fmt"
	"strconv"
)

// Version names the shape of Manifest in JSON.
const Version = "c9s.dev/manifest/v1"

// ManifestFile is the key in the <pod>-plan-<digest> ConfigMap.
const ManifestFile = "manifest.json"

// Where things are in the prepare and wire containers.
const (
	// PlanDir is the folder of the <pod>-plan-<digest> ConfigMap (both).
	PlanDir = "/etc/c9s/plan"
	// FilesDir holds the chunks of all staged files, one a file (prepare).
	// Entry.Chunks are paths below it.
	FilesDir = "/etc/c9s/files"
	// NodesDir has one folder a node, named by its ID: the node's folder, which
	// prepare fills and of which the device mounts parts (prepare).
	NodesDir = "/nodes"
	// VolumesDir has one folder a named volume (prepare), where the Pod has a
	// claim; Manifest.Volumes are below it.
	VolumesDir = "/volumes"
	// StateDir is an empty folder that lives as long as the Pod (both).
	StateDir = "/run/c9s"
	// ExecDir, below StateDir, has one folder a device container with a program:
	// HelperFile, ProgramFile, payloads and an empty "run" made by prepare. The
	// device sees that folder at HelperDir.
	ExecDir = "exec"
	// RunDir, below StateDir, has one folder a device container with a program,
	// which the device sees, writable, at HelperDir + "/run": ResultFile is
	// there. What is in it comes from the device and is not to be trusted.
	RunDir = "run"
)

// Where things are in a device container with a program.
const (
	// HelperDir is read-only but for its folder "run".
	HelperDir = "/c9s"
	// HelperFile, in HelperDir, is the static helper binary.
	HelperFile = "exec"
	// ProgramFile, in HelperDir, is a Program.
	ProgramFile = "steps.json"
	// ResultFile, in HelperDir + "/run", is a Result, replaced by rename.
	ResultFile = "result.json"
)

// Manifest tells what has to be laid out for one Pod.
type Manifest struct {
	Version string `json:"version"`
	Lab     string `json:"lab"`
	Pod     string `json:"pod"`
	// Nodes are the Pod's nodes, the primary first.
	Nodes []Node `json:"nodes"`
	// Volumes are folders to be made in VolumesDir, with mode 0777. Left to the
	// kubelet they would be root's alone.
	Volumes []string `json:"volumes,omitempty"`
}

// Node is one node's folder and programs.
type Node struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// Entries of the node's folder, parents before what is in them. A parent
	// that is not listed is made with mode 0755.
	Entries []Entry `json:"entries,omitempty"`
	// Gate is what the sidecar waits for before it lets the devices start.
	Gate Gate `json:"gate,omitzero"`
	// Containers are the device containers that run a program.
	Containers []Container `json:"containers,omitempty"`
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
	// Secret tells that the chunks come from a Secret.
	Secret bool `json:"secret,omitempty"`
	// Certificate is "ca.crt", "tls.crt" or "tls.key": the one chunk is there
	// only where the node's certificate has been issued (Secret <id>-tls), and
	// Digest and Size are not known.
	Certificate string `json:"certificate,omitempty"`
	// Seed leaves a file alone that is in the node's folder already.
	Seed bool `json:"seed,omitempty"`
}

// Mode are permission bits, four octal digits in JSON.
type Mode uint32

// MarshalText writes "0644".
func (m Mode) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%04o", uint32(m)), nil }

// UnmarshalText reads octal digits.
func (m *Mode) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 8, 12)
	if err != nil {
		return fmt.Errorf("file mode %q: want up to four octal digits", text)
	}
	*m = Mode(n)
	return nil
}
