// Package lab is the model of one lab, as compile makes it from a topology file
// and as plan and render read it: every name, address, id and file is settled,
// nothing refers back to the file model or to the user's disk.
package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// Version names the shape of this model in JSON, as the hook planner receives it.
const Version = "c9s.dev/lab/v1"

// Lab is one compiled topology. Nodes are sorted by name, Links are in the
// order of the file, Pods are sorted by name.
type Lab struct {
	// Version is always the constant Version.
	Version string `json:"version"`
	// Name is the lab's name with magic variables replaced.
	Name string `json:"name"`
	// Prefix is containerlab's container name prefix ("clab" by default).
	Prefix string `json:"prefix"`
	// Namespace is the Kubernetes namespace (RFC 1123 label).
	Namespace string `json:"namespace"`
	// Source is the topology file's base name ("topo.clab.yml").
	Source string `json:"source"`
	Mgmt   Mgmt   `json:"mgmt"`
	// CA is settings.certificate-authority; nil where the lab does not set it.
	CA    *CA     `json:"certificateAuthority,omitempty"`
	Nodes []*Node `json:"nodes"`
	Links []*Link `json:"links,omitempty"`
	// Image is the c9s image of the lab's Pods, "" for the default.
	Image string `json:"image,omitempty"`
	// SuffixMgmtNames has the names of the management network be NODE.mgmt alone, so that
	// the plain names are free for the lab's own.
	SuffixMgmtNames bool `json:"suffixMgmtNames,omitempty"`
	// SharedClaim is the PersistentVolumeClaim with the named volumes that several Pods
	// have, "" for none: each Pod has its own then.
	SharedClaim string `json:"sharedClaim,omitempty"`
	// EncryptWires seals what passes between Pods.
	EncryptWires bool `json:"encryptWires,omitempty"`
	// NoLocalWires keeps the Pods out of the worker's folder, without which wires between
	// Pods of one worker take the way of others.
	NoLocalWires bool `json:"noLocalWires,omitempty"`
	// Pack has the Pods prefer workers with other Pods of the lab.
	Pack bool `json:"pack,omitempty"`
	// BootPerWorker is how many Pods may boot at a time on one worker, 0 for any number.
	BootPerWorker int `json:"bootPerWorker,omitempty"`
	// Pods are the groups of nodes that share one Pod, sorted by name. Every
	// node is in exactly one; most are alone.
	Pods []Pod `json:"pods"`
	// Allocations are all values taken from pools; render writes them out and
	// the next compile reads them back.
	Allocations Allocations `json:"allocations"`
	// PoolSizes are the numbers of values that the pools can give.
	PoolSizes map[string]uint64 `json:"-"`
	// Files holds the bytes behind each FileRef, by digest. It is not part of
	// the JSON form; the hook planner's client writes the files out instead.
	Files map[Digest][]byte `json:"-"`

	nodes map[string]*Node
}

// Node returns the node called name as the topology writes it, or nil.
func (l *Lab) Node(name string) *Node {
	if l.nodes == nil {
		l.nodes = make(map[string]*Node, len(l.Nodes))
		for _, n := range l.Nodes {
			l.nodes[n.Name] = n
		}
	}
	return l.nodes[name]
}

// AddFile stores the bytes of a file and returns its reference.
func (l *Lab) AddFile(data []byte, mode uint32, origin string) FileRef {
	sum := sha256.Sum256(data)
	digest := Digest("sha256:" + hex.EncodeToString(sum[:]))
	if _, have := l.Files[digest]; !have {
		l.Files[digest] = data
	}
	return FileRef{Digest: digest, Size: int64(len(data)), Mode: mode, Origin: origin}
}

// Pod is a set of nodes that share one Pod: a node alone, or a primary node and
// those with `network-mode: container:<primary>`.
type Pod struct {
	// Name is the Kubernetes name of the Pod's objects: the primary's ID.
	Name string `json:"name"`
	// Nodes are node names as the topology writes them, the primary first, the
	// others sorted.
	Nodes []string `json:"nodes"`
}

// Mgmt is the management network. A family that the lab does not use has a zero
// Subnet.
type Mgmt struct {
	Network string     `json:"network"`
	IPv4    MgmtFamily `json:"ipv4,omitzero"`
	IPv6    MgmtFamily `json:"ipv6,omitzero"`
	MTU     int        `json:"mtu"`
	// ExternalAccess reports whether nodes reach beyond the lab (default true).
	ExternalAccess bool `json:"externalAccess"`
}

// MgmtFamily is one address family of the management network.
type MgmtFamily struct {
	Subnet  netip.Prefix `json:"subnet,omitzero"`
	Gateway netip.Addr   `json:"gateway,omitzero"`
	// Range limits dynamic addresses; zero means the whole Subnet.
	Range netip.Prefix `json:"range,omitzero"`
}

// CA is settings.certificate-authority: an external pair, or how to make one.
type CA struct {
	Cert *FileRef `json:"cert,omitempty"`
	Key  *FileRef `json:"key,omitempty"`
	// KeySize is in bits (default 2048).
	KeySize int `json:"keySize,omitempty"`
	// ValiditySeconds is how long the CA certificate is valid.
	ValiditySeconds int64 `json:"validitySeconds,omitempty"`
}

// NetworkMode is how a node meets the network.
type NetworkMode string

const (
	// NetworkMgmt is the default: an eth0 on the management network.
	NetworkMgmt NetworkMode = ""
	// NetworkNone has no management interface.
	NetworkNone NetworkMode = "none"
	// NetworkHost is the worker's own network namespace.
	NetworkHost NetworkMode = "host"
	// NetworkContainer shares the namespace of Node.NetworkNode.
	NetworkContainer NetworkMode = "container"
)

// Node is one node with every field resolved (defaults < kinds < groups < node).
type Node struct {
	// Name is as the topology writes it; ID is its Kubernetes name.
	Name string `json:"name"`
	ID   string `json:"id"`
	// Pos is the node's key in the topology file.
	Pos diag.Pos `json:"pos"`
	// Kind is the canonical kind name of the catalogue (aliases resolved);
	// WrittenKind is what the file says, in lower case.
	Kind        string `json:"kind"`
	WrittenKind string `json:"writtenKind"`
	Type        string `json:"type,omitempty"`
	Group       string `json:"group,omitempty"`
	Position    string `json:"position,omitempty"`
	// LongName is containerlab's container name (<prefix>-<lab>-<node>).
	LongName string `json:"longName"`
	FQDN     string `json:"fqdn"`
	// Hostname inside the device, exactly as written.
	Hostname string `json:"hostname"`
	// Index is a small number that is unique in the lab and stable (1..4094),
	// for kinds that number themselves (IOL's pid, SR Linux's base MAC).
	Index int `json:"index"`
	// RootNamespace marks bridge, ovs-bridge, host: no device container.
	RootNamespace bool `json:"rootNamespace,omitempty"`

	Image string `json:"image,omitempty"`
	// ImagePullPolicy is a Kubernetes value: Always, IfNotPresent or Never.
	ImagePullPolicy string `json:"imagePullPolicy,omitempty"`
	// Entrypoint and Cmd are split as a shell would; nil means the image's own.
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	User       string   `json:"user,omitempty"`
	// Env is the user's environment (env-files and env merged); values that
	// containerlab itself adds are the planner's.
	Env     map[string]string `json:"env,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Mounts come from binds and volumes, sorted by Target.
	Mounts []Mount `json:"mounts,omitempty"`
	// Tmpfs maps a target path to mount options ("rw,size=64m" or "").
	Tmpfs   map[string]string `json:"tmpfs,omitempty"`
	Devices []string          `json:"devices,omitempty"`
	CapAdd  []string          `json:"capAdd,omitempty"`
	// Privileged is the resolved value (the kind's default where not written).
	Privileged   bool     `json:"privileged"`
	SecurityOpts []string `json:"securityOpts,omitempty"`
	// ShmSize and Memory are bytes; 0 means not set. CPU is in cores.
	ShmSize int64   `json:"shmSize,omitempty"`
	Memory  int64   `json:"memory,omitempty"`
	CPU     float64 `json:"cpu,omitempty"`
	CPUSet  string  `json:"cpuSet,omitempty"`
	PIDMode string  `json:"pidMode,omitempty"`
	// RestartPolicy is containerlab's word: "", no, always, on-failure, unless-stopped.
	RestartPolicy string `json:"restartPolicy,omitempty"`
	AutoRemove    bool   `json:"autoRemove,omitempty"`

	// StartupConfig is staged from a path, a URL or inline text.
	StartupConfig         *Config  `json:"startupConfig,omitempty"`
	EnforceStartupConfig  bool     `json:"enforceStartupConfig,omitempty"`
	SuppressStartupConfig bool     `json:"suppressStartupConfig,omitempty"`
	License               *FileRef `json:"license,omitempty"`

	NetworkMode NetworkMode `json:"networkMode,omitempty"`
	// NetworkNode is the primary, for NetworkContainer.
	NetworkNode string `json:"networkNode,omitempty"`
	// MgmtIPv4 and MgmtIPv6 are the allocated management addresses; invalid
	// where the node has none. MgmtStatic reports whether the user wrote them.
	MgmtIPv4   netip.Addr `json:"mgmtIPv4,omitzero"`
	MgmtIPv6   netip.Addr `json:"mgmtIPv6,omitzero"`
	MgmtStatic bool       `json:"mgmtStatic,omitempty"`
	Aliases    []string   `json:"aliases,omitempty"`
	DNS        *DNS       `json:"dns,omitempty"`
	Ports      []Port     `json:"ports,omitempty"`
	// SharedPort is the node's first port on the lab's shared load balancer, of SharedPorts
	// for each protocol; 0 for a node that is not behind it.
	SharedPort uint16 `json:"sharedPort,omitempty"`
	// AppProtocols are the application protocols of ports, by PortName.
	AppProtocols map[string]string `json:"appProtocols,omitempty"`

	// Exec are the node's commands, already split, run once it is up.
	Exec   []Exec `json:"exec,omitempty"`
	Stages Stages `json:"stages,omitzero"`
	// StartupDelay is in seconds.
	StartupDelay int          `json:"startupDelay,omitempty"`
	Healthcheck  *Healthcheck `json:"healthcheck,omitempty"`
	Certificate  Certificate  `json:"certificate,omitzero"`
	Credentials  Credentials  `json:"credentials,omitzero"`
	Components   []Component  `json:"components,omitempty"`
	// LinkApplyMode is the user's override: "", live, restart or recreate.
	LinkApplyMode string         `json:"linkApplyMode,omitempty"`
	ConfigVars    map[string]any `json:"configVars,omitempty"`
	Extras        Extras         `json:"extras,omitzero"`
	// Keys are the keys of the node's kind that neither Env nor Extras carry: text,
	// int, bool, []string, NamedFile, []NamedFile or []map[string]any.
	Keys map[string]any `json:"keys,omitempty"`

	// GroupForwardMask is that of the bridge of a segment, nil for the default.
	GroupForwardMask *uint16 `json:"groupForwardMask,omitempty"`

	// Endpoints are the node's link ends, in the order in which the interfaces
	// are made. For a node with NetworkContainer they are still its own.
	Endpoints []*Endpoint `json:"endpoints,omitempty"`
	// Policy is what the c9s.yaml profiles set for this node.
	Policy Policy `json:"policy,omitzero"`
}

// OnMgmtNetwork reports whether the node has an address of the management network.
func (n *Node) OnMgmtNetwork() bool {
	return !n.RootNamespace && n.NetworkMode == NetworkMgmt
}

// Source is the value of the c9s.dev/source annotation: "topo.clab.yml:17". It has
// the file's base name only, so that it does not depend on where c9s was called.
func (n *Node) Source() string {
	file := n.Pos.File
	return diag.Pos{File: file[strings.LastIndexByte(file, '/')+1:], Line: n.Pos.Line}.String()
}

// Config is a startup-config.
type Config struct {
	File FileRef `json:"file"`
	// Name is the base name that containerlab would see; kinds look at its
	// extension and at ".partial".
	Name string `json:"name"`
	// Partial reports whether Name contains ".partial" (inline configs always do).
	Partial bool `json:"partial,omitempty"`
	// Verbatim is set for a configuration that c9s save wrote: it is neither a template nor
	// are its variables expanded.
	Verbatim bool `json:"verbatim,omitempty"`
	// Env holds those variables of the caller's environment that the text refers
	// to. Kinds that expand variables expand these and no others.
	Env map[string]string `json:"env,omitempty"`
}

// Mount is a bind or a volume.
type Mount struct {
	// Target is the absolute path in the container.
	Target   string   `json:"target"`
	ReadOnly bool     `json:"readOnly,omitempty"`
	Pos      diag.Pos `json:"pos"`
	// Exactly one of the following is set, but for Dir with Certificates.
	File *FileRef `json:"file,omitempty"`
	// Dir is a staged folder: files with paths relative to Target.
	Dir *Dir `json:"dir,omitempty"`
	// Certificates are the parts of the node's certificate ("ca.crt", "tls.crt",
	// "tls.key") that Dir has besides, by their paths in it. Without Dir, the mount is the
	// one part whose path is "".
	Certificates map[string]string `json:"certificates,omitempty"`
	// HostPath is a path of the worker (always mounted read-only unless it is
	// a device).
	HostPath string `json:"hostPath,omitempty"`
	// Volume is a named volume, or "" with Anonymous set.
	Volume    string `json:"volume,omitempty"`
	Anonymous bool   `json:"anonymous,omitempty"`
}

// Dir is a staged folder.
type Dir struct {
	// Mode is the folder's own permission bits.
	Mode uint32 `json:"mode"`
	// Entries are sorted by Path; parents come before children.
	Entries []DirEntry `json:"entries,omitempty"`
}

// DirEntry is a file, a sub-folder (File nil, Link "") or a symbolic link.
type DirEntry struct {
	// Path is slash-separated, relative, without "..".
	Path string   `json:"path"`
	Mode uint32   `json:"mode"`
	File *FileRef `json:"file,omitempty"`
	Link string   `json:"link,omitempty"`
}

// Digest is "sha256:" and 64 hexadecimal digits.
type Digest string

// FileRef points at bytes in Lab.Files.
type FileRef struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"`
	// Mode are the permission bits on the user's disk (0644 if there was none).
	Mode uint32 `json:"mode"`
	// Secret keeps the file out of ConfigMaps: licences, private keys, and what
	// the user marks.
	Secret bool `json:"secret,omitempty"`
	// Origin is where it came from, for messages: a path relative to the
	// topology's folder, a URL, or "inline".
	Origin string `json:"origin,omitempty"`
	// Placeholder reports whether --allow-missing replaced an absent file.
	Placeholder bool `json:"placeholder,omitempty"`
}

// Exec is one command; Raw is the text the user wrote.
type Exec struct {
	Argv []string `json:"argv"`
	Raw  string   `json:"raw"`
}

// StageName is one of containerlab's deployment stages.
type StageName string

// The stages, in their order.
const (
	StageCreate      StageName = "create"
	StageCreateLinks StageName = "create-links"
	StageConfigure   StageName = "configure"
	StageHealthy     StageName = "healthy"
	StageExit        StageName = "exit"
)

// Stages maps each stage that the topology mentions to what it holds.
type Stages map[StageName]Stage

// Stage is what a node waits for before a stage, and runs around it.
type Stage struct {
	WaitFor []WaitFor   `json:"waitFor,omitempty"`
	Exec    []StageExec `json:"exec,omitempty"`
}

// WaitFor names another node's stage, to be over before this one starts.
type WaitFor struct {
	Node  string    `json:"node"`
	Stage StageName `json:"stage"`
}

// StageExec is a command of a stage. Phase is on-enter or on-exit.
type StageExec struct {
	Exec
	Phase string `json:"phase"`
}

// DNS is the node's resolver configuration.
type DNS struct {
	Servers []string `json:"servers,omitempty"`
	Options []string `json:"options,omitempty"`
	Search  []string `json:"search,omitempty"`
}

// Port is a published port.
type Port = contract.Port

// Healthcheck is Docker's: times in seconds.
type Healthcheck struct {
	// Test is ["CMD", args...], ["CMD-SHELL", line] or ["NONE"].
	Test        []string `json:"test"`
	Interval    int      `json:"interval"`
	Timeout     int      `json:"timeout"`
	Retries     int      `json:"retries"`
	StartPeriod int      `json:"startPeriod"`
}

// Certificate is the node's certificate block, merged field by field.
type Certificate struct {
	Issue bool `json:"issue,omitempty"`
	// KeySize is in bits; 0 means the default, 2048.
	KeySize int `json:"keySize,omitempty"`
	// ValiditySeconds is 0 for the default, one year.
	ValiditySeconds int64    `json:"validitySeconds,omitempty"`
	SANs            []string `json:"sans,omitempty"`
}

// Credentials are the resolved login: the topology's, filled up from the kind's.
type Credentials struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// Component is a card of a chassis (SR-SIM, SR OS).
type Component struct {
	Slot string            `json:"slot,omitempty"`
	Type string            `json:"type,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
	SFM  string            `json:"sfm,omitempty"`
	XIOM []XIOM            `json:"xiom,omitempty"`
	MDA  []MDA             `json:"mda,omitempty"`
}

// XIOM is an XIOM slot with its MDAs.
type XIOM struct {
	Slot int    `json:"slot"`
	Type string `json:"type"`
	MDA  []MDA  `json:"mda,omitempty"`
}

// MDA is a media adapter in a slot.
type MDA struct {
	Slot int    `json:"slot"`
	Type string `json:"type"`
}

// Extras are kind-specific files: SR Linux agents and what cEOS wants in flash.
type Extras struct {
	SRLAgents       []NamedFile `json:"srlAgents,omitempty"`
	CEOSCopyToFlash []NamedFile `json:"ceosCopyToFlash,omitempty"`
}

// NamedFile is a file with the base name that it has on the user's disk.
type NamedFile struct {
	Name string  `json:"name"`
	File FileRef `json:"file"`
}
