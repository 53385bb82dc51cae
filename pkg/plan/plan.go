// Package plan turns one node of a lab into a runtime-neutral description of
// what has to run: containers, files, mounts, steps and needs.
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

// Planner plans nodes. It is safe for concurrent use. The same lab and node give
// the same plan, and no plan depends on which other nodes the lab has beyond
// those that the node is linked to.
type Planner interface {
	// Name identifies the planner and its version: "builtin/0.79.0".
	Name() string
	// Plan plans one node of l. What the node cannot have is in the plan's
	// Diagnostics; the error is for what is nobody's topology's fault.
	Plan(ctx context.Context, l *lab.Lab, n *lab.Node) (*Plan, error)
}

// Plan is what one node needs to run.
type Plan struct {
	// Version is always the constant Version.
	Version string `json:"version"`
	// Node is the name as the topology writes it, Kind the canonical kind.
	Node string `json:"node"`
	Kind string `json:"kind"`
	// Planner is the Name of the Planner that made it.
	Planner string `json:"planner"`
	// Containers: one for most kinds, one a card for a chassis, none for a
	// bridge, ovs-bridge or host.
	Containers []Container `json:"containers,omitempty"`
	// Files are laid out in the node's folder before any container starts,
	// sorted by Path.
	Files []File `json:"files,omitempty"`
	// Interfaces are the data interfaces in the order in which they are made.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Steps run in order once the containers have started: first the kind's,
	// then the user's exec.
	Steps []Step `json:"steps,omitempty"`
	// Readiness tells when the device is up; nil means "when it runs".
	Readiness *Readiness `json:"readiness,omitempty"`
	Needs     Needs      `json:"needs,omitzero"`
	// Credentials are the login of the device, Ports where it is managed.
	Credentials lab.Credentials `json:"credentials,omitzero"`
	Ports       []kinds.Port    `json:"ports,omitempty"`
	// LinkApplyMode says how a change of links reaches the device: live,
	// restart or recreate.
	LinkApplyMode string `json:"linkApplyMode,omitempty"`
	// StopSignal is the signal that stops the device ("" for SIGTERM).
	StopSignal string `json:"stopSignal,omitempty"`
	// Persist are paths in the node's folder that hold what the device saves.
	Persist []string `json:"persist,omitempty"`
	// Diagnostics of planning: what this kind does not carry (warnings) or what
	// cannot be planned (errors).
	Diagnostics []diag.Diagnostic `json:"diagnostics,omitempty"`
}

// Container is one device container. Docker's words: Entrypoint and Cmd are nil
// where the image's own apply.
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
	// ShmSize and Memory in bytes, CPU in cores; 0 where not set.
	ShmSize int64   `json:"shmSize,omitempty"`
	Memory  int64   `json:"memory,omitempty"`
	CPU     float64 `json:"cpu,omitempty"`
	// TTY and Stdin: containerlab starts every node with both.
	TTY   bool `json:"tty,omitempty"`
	Stdin bool `json:"stdin,omitempty"`
	// RestartPolicy is containerlab's word, "" for its default.
	RestartPolicy string `json:"restartPolicy,omitempty"`
	// MgmtMAC is the MAC of eth0 where the kind fixes it.
	MgmtMAC string `json:"mgmtMAC,omitempty"`
}

// Mount puts something at Target. Exactly one source is set.
type Mount struct {
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Path is a file or folder of the node's folder ("config").
	Path string `json:"path,omitempty"`
	// HostPath is a path of the worker.
	HostPath string `json:"hostPath,omitempty"`
	// Volume is a named volume of the node; Anonymous one without a name.
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
	// Secret keeps it out of ConfigMaps.
	Secret bool `json:"secret,omitempty"`
	// Certificate asks for material that is issued later: "ca.crt", "tls.crt"
	// or "tls.key" of the node's certificate. Content and Ref are empty then.
	Certificate string `json:"certificate,omitempty"`
	// Seed is set if a file which the device saved over later wins over this
	// one (a startup-config without enforce-startup-config).
	Seed bool `json:"seed,omitempty"`
}

// Interface is a data interface as the device's namespace sees it.
type Interface struct {
	Name  string `json:"name"`
	Alias string `json:"alias,omitempty"`
	MAC   string `json:"mac,omitempty"`
}

// Step is one thing to do in a running container. Exactly one action is set.
type Step struct {
	// Name is for people: "commit the configuration".
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

// What a step runs is what the exec helper reads, from the plan to the device.
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

// Readiness is a command or Docker's healthcheck.
type Readiness struct {
	// Healthcheck in Docker's form; the times are in seconds.
	Healthcheck lab.Healthcheck `json:"healthcheck"`
	// Reason says where it comes from: "topology", "kind" or "image".
	Reason string `json:"reason"`
}

// Needs is what the worker must offer.
type Needs struct {
	KVM   bool `json:"kvm,omitempty"`
	SSSE3 bool `json:"ssse3,omitempty"`
	// MinCPU is in cores, MinMemory in bytes; 0 where the kind does not say.
	MinCPU    int   `json:"minCPU,omitempty"`
	MinMemory int64 `json:"minMemory,omitempty"`
	// Certificate is set if the node has a certificate issued by the lab's CA.
	Certificate bool `json:"certificate,omitempty"`
	// License is "required", "warn" or "".
	License string `json:"license,omitempty"`
}
