// Package plan turns one node of a lab into a description of what has to run, independent of
// any container runtime: containers, files, mounts, steps and needs.
package plan

import (
	"context"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// Version names the shape of Plan in JSON.
const Version = "c9s.dev/plan/v1"

// A Planner plans nodes. It is safe for concurrent use. The same lab and node result in the
// same plan, and a plan depends on no nodes other than those that the node is linked to.
type Planner interface {
	// Name identifies the planner and its version: "builtin/0.79.0".
	Name() string
	// Plan plans one node of l. Faults of the topology are in the plan's Diagnostics; the
	// error is for everything else.
	Plan(ctx context.Context, l *lab.Lab, n *lab.Node) (*Plan, error)
}

// Plan describes what one node needs to run.
type Plan struct {
	// Version is always the constant Version.
	Version string `json:"version"`
	// Node is the name as the topology writes it, Kind the canonical kind.
	Node string `json:"node"`
	Kind string `json:"kind"`
	// Planner is the Name of the Planner that made it.
	Planner string `json:"planner"`
	// Containers holds one container for most kinds, one per card for a chassis, and none
	// for a bridge, ovs-bridge or host.
	Containers []Container `json:"containers,omitempty"`
	// Files are written to the node's folder before any container starts. They are sorted
	// by Path.
	Files []File `json:"files,omitempty"`
	// Interfaces are the data interfaces in the order in which they are created.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Steps run in order once the containers have started: first the kind's,
	// then the user's exec.
	Steps []Step `json:"steps,omitempty"`
	// Readiness checks whether the device is ready; if nil, it is ready once it runs.
	Readiness *Readiness `json:"readiness,omitempty"`
	Needs     Needs      `json:"needs,omitzero"`
	// Credentials are the login of the device; Ports are its management ports.
	Credentials lab.Credentials `json:"credentials,omitzero"`
	Ports       []kinds.Port    `json:"ports,omitempty"`
	// LinkApplyMode is how a change of links reaches the device: live, restart or
	// recreate.
	LinkApplyMode string `json:"linkApplyMode,omitempty"`
	// StopSignal is the signal that stops the device ("" for SIGTERM).
	StopSignal string `json:"stopSignal,omitempty"`
	// Persist are paths in the node's folder that hold what the device saves.
	Persist []string `json:"persist,omitempty"`
	// Diagnostics holds warnings, for example about features that the kind does not
	// support, and the errors because of which the node cannot be planned.
	Diagnostics []diag.Diagnostic `json:"diagnostics,omitempty"`
}

// Container describes one container of the device, in Docker's terms: if Entrypoint or Cmd
// is nil, that of the image applies.
type Container struct {
	// Name is "" for the node's only container, else the lower-case slot.
	Name       string            `json:"name,omitempty"`
	Image      string            `json:"image"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Cmd        []string          `json:"cmd,omitempty"`
	User       string            `json:"user,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	// Mounts are sorted by Target.
	Mounts []Mount `json:"mounts,omitempty"`
	// Tmpfs maps a target to mount options.
	Tmpfs      map[string]string `json:"tmpfs,omitempty"`
	Sysctls    map[string]string `json:"sysctls,omitempty"`
	CapAdd     []string          `json:"capAdd,omitempty"`
	Devices    []string          `json:"devices,omitempty"`
	Privileged bool              `json:"privileged,omitempty"`
	// ShmSize and Memory are in bytes, CPU is in cores; 0 if not set.
	ShmSize int64   `json:"shmSize,omitempty"`
	Memory  int64   `json:"memory,omitempty"`
	CPU     float64 `json:"cpu,omitempty"`
	// TTY and Stdin are set for every node, as in containerlab.
	TTY   bool `json:"tty,omitempty"`
	Stdin bool `json:"stdin,omitempty"`
	// RestartPolicy is containerlab's restart-policy, "" for its default.
	RestartPolicy string `json:"restartPolicy,omitempty"`
	// MgmtMAC is the MAC address of eth0 if the kind sets it.
	MgmtMAC string `json:"mgmtMAC,omitempty"`
}

// Mount describes a mount at Target. Exactly one source is set.
type Mount struct {
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Path is a file or folder of the node's folder ("config").
	Path string `json:"path,omitempty"`
	// HostPath is a path of the worker.
	HostPath string `json:"hostPath,omitempty"`
	// Volume is a named volume of the node; Anonymous is set for one without a name.
	Volume    string `json:"volume,omitempty"`
	Anonymous bool   `json:"anonymous,omitempty"`
}

// File is an entry of the node's folder: a file (Content or Ref), a folder (Dir)
// or a symbolic link (Link).
type File struct {
	// Path is relative to the node's folder, slash-separated, without "..".
	Path string `json:"path"`
	// Mode are the permission bits that the device sees.
	Mode uint32 `json:"mode"`
	UID  int    `json:"uid,omitempty"`
	GID  int    `json:"gid,omitempty"`
	Dir  bool   `json:"dir,omitempty"`
	Link string `json:"link,omitempty"`
	// Content is generated text or bytes (an empty file has neither Content nor Ref).
	Content []byte `json:"content,omitempty"`
	// Ref is a file of the user, with its bytes in Lab.Files.
	Ref *lab.FileRef `json:"ref,omitempty"`
	// Secret keeps the file out of ConfigMaps.
	Secret bool `json:"secret,omitempty"`
	// Certificate names material that is issued after planning: "ca.crt", "tls.crt" or
	// "tls.key" of the node's certificate. Content and Ref are then empty.
	Certificate string `json:"certificate,omitempty"`
	// Seed is set if the file is only written when it does not exist, so that what the
	// device saves is kept (a startup-config without enforce-startup-config).
	Seed bool `json:"seed,omitempty"`
}

// Interface describes a data interface in the device's network namespace.
type Interface struct {
	Name  string `json:"name"`
	Alias string `json:"alias,omitempty"`
	MAC   string `json:"mac,omitempty"`
}

// Step is one action in a running container. Exactly one action is set.
type Step struct {
	// Name describes the step to a person: "commit the configuration".
	Name string `json:"name,omitempty"`
	// Container is the Name of the container, "" for the first.
	Container string `json:"container,omitempty"`
	// User is set if the step is an exec entry of the topology.
	User  bool       `json:"user,omitempty"`
	Run   *RunStep   `json:"run,omitempty"`
	Wait  *WaitStep  `json:"wait,omitempty"`
	Write *WriteStep `json:"write,omitempty"`
	CLI   *CLIStep   `json:"cli,omitempty"`
}

// The actions of a step are those of the exec helper, which reads them as planned.
type (
	RunStep  = contract.Run
	WaitStep = contract.Wait
	CLIStep  = contract.CLI
)

// WriteStep writes a file inside the container.
type WriteStep struct {
	Path    string       `json:"path"`
	Mode    uint32       `json:"mode"`
	Content []byte       `json:"content,omitempty"`
	Ref     *lab.FileRef `json:"ref,omitempty"`
}

// Readiness describes how to check whether the device is ready.
type Readiness struct {
	// Healthcheck has Docker's form. Its times are in seconds.
	Healthcheck lab.Healthcheck `json:"healthcheck"`
	// Reason is the source of the check: "topology", "kind" or "image".
	Reason string `json:"reason"`
}

// Needs describes what the worker must provide.
type Needs struct {
	KVM   bool `json:"kvm,omitempty"`
	SSSE3 bool `json:"ssse3,omitempty"`
	// MinCPU is in cores, MinMemory in bytes; 0 if the kind does not specify it.
	MinCPU    int   `json:"minCPU,omitempty"`
	MinMemory int64 `json:"minMemory,omitempty"`
	// Certificate is set if the node has a certificate issued by the lab's CA.
	Certificate bool `json:"certificate,omitempty"`
	// License is "required", "warn" or "".
	License string `json:"license,omitempty"`
}
