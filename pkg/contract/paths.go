package contract

// Paths in the wire container.
const (
	// LinksDir is the folder of the <pod>-links ConfigMap.
	LinksDir = "/etc/c9s/links"
	// DirectoryDir is the folder of the lab's directory and addresses.
	DirectoryDir = "/etc/c9s/directory"
	// WireKeyFile holds the key of the wire's hello. A lab without a key has no
	// such file.
	WireKeyFile = "/etc/c9s/wire-key/key"
	// LoginDir has a folder for each node whose password for a login a Secret of the namespace
	// holds, named by the node's ID.
	LoginDir = "/etc/c9s/login"
	// HostProc is the worker's /proc. It is mounted only if a link needs the
	// worker's network namespace (HostProc + "/1/ns/net").
	HostProc = "/host/proc"
	// NearDir is the worker's folder NearFolder, where sidecars on one worker find each
	// other. The sidecar's first process unmounts it: nothing else in the container, and no
	// device, can open it by a path.
	NearDir = "/host/c9s"
)

// NearFolder is a folder of the worker, in memory, with a folder for each lab.
const NearFolder = "/run/c9s"

// Paths in the wire container, and in the prepare container of a Pod that has no wire.
const (
	// PlanDir is the folder of the ConfigMap with ManifestFile.
	PlanDir = "/etc/c9s/plan"
	// FilesDir holds the chunks of all staged files, one per file. Entry.Chunks are
	// paths below it.
	FilesDir = "/etc/c9s/files"
	// NodesDir has one folder per node, named by the node's ID. Package prepare fills
	// it, and the device mounts parts of it.
	NodesDir = "/nodes"
	// VolumesDir has one folder per named volume if the Pod has a claim.
	// Manifest.Volumes are below it.
	VolumesDir = "/volumes"
	// StateDir is an empty folder that lives as long as the Pod.
	StateDir = "/run/c9s"
	// StateLimit is the most that StateDir may hold, in bytes. The kubelet evicts a
	// Pod that goes over it. A sidecar whose network namespace is lost does so on
	// purpose, with LostMessage for its last words.
	StateLimit  = 512 << 20
	LostMessage = "c9s: the sidecar's network namespace is lost"
	// FilesMessage begins the last words of a sidecar that cannot lay out the devices' files.
	FilesMessage = "c9s: the files cannot be laid out"
	// WireContainer is the sidecar's container, SidecarProgram its program there.
	WireContainer  = "wire"
	SidecarProgram = "/c9s-sidecar"
	// IdleContainer is the container of a Pod without a device, which holds the
	// sidecar's network namespace. It has a folder in ExecDir too.
	IdleContainer = "bridge"
	// ExecDir, below StateDir, has one folder per device container with a program:
	// HelperFile, ProgramFile, payloads and an empty "run", all made by prepare.
	// The device sees that folder at HelperDir.
	ExecDir = "exec"
	// RunDir, below StateDir, has one folder per device container with a program.
	// The device sees it, writable, at HelperDir + "/run" and writes ResultFile to
	// it. The device controls its contents, so do not trust them.
	RunDir = "run"
)

// Paths in a device container with a program.
const (
	// HelperDir is read-only except for its folder "run".
	HelperDir = "/c9s"
	// HelperFile, in HelperDir, is the static helper binary.
	HelperFile = "exec"
	// SocketFile, in HelperDir, is where the Pod's sidecar answers HTTP. HoldSocket
	// is where the helper gets the sidecar's network namespace, which it holds.
	SocketFile = "sidecar.sock"
	HoldSocket = "hold.sock"
	// ProgramFile, in HelperDir, is a Program.
	ProgramFile = "steps.json"
	// ResultFile, in HelperDir + "/run", is a Result, replaced by rename.
	ResultFile = "result.json"
	// DiskBin, in HelperDir, holds the helper as DiskProgram, which keeps the disk of a
	// virtual machine in DisksDir. It comes first in the PATH of the container.
	DiskBin     = "bin"
	DiskProgram = "qemu-img"
	DisksDir    = "/c9s-disks"
)
