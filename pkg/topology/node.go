package topology

import "github.com/c9s-lab/c9s/pkg/diag"

// NodeDef is a node definition: of a node, a group, a kind or the defaults.
type NodeDef struct {
	Pos                   diag.Pos
	Kind                  Str            `yaml:"kind"`
	Group                 Str            `yaml:"group"`
	Type                  Str            `yaml:"type"`
	StartupConfig         Str            `yaml:"startup-config"`
	StartupDelay          Int            `yaml:"startup-delay"`
	EnforceStartupConfig  Bool           `yaml:"enforce-startup-config"`
	SuppressStartupConfig Bool           `yaml:"suppress-startup-config"`
	AutoRemove            Bool           `yaml:"auto-remove"`
	RestartPolicy         Str            `yaml:"restart-policy"`
	Config                *ConfigVars    `yaml:"config"`
	Image                 Str            `yaml:"image"`
	ImagePullPolicy       Str            `yaml:"image-pull-policy"`
	License               Str            `yaml:"license"`
	Position              Str            `yaml:"position"`
	Hostname              Str            `yaml:"hostname"`
	Entrypoint            Str            `yaml:"entrypoint"`
	Cmd                   Str            `yaml:"cmd"`
	Exec                  List           `yaml:"exec"`
	Binds                 List           `yaml:"binds"`
	Volumes               List           `yaml:"volumes"`
	Devices               List           `yaml:"devices"`
	CapAdd                List           `yaml:"cap-add"`
	Privileged            Bool           `yaml:"privileged"`
	CgroupnsMode          Str            `yaml:"cgroupns-mode"`
	CgroupParent          Str            `yaml:"cgroup-parent"`
	PIDMode               Str            `yaml:"pid-mode"`
	Tmpfs                 Map            `yaml:"tmpfs"`
	SecurityOpts          List           `yaml:"security-opts"`
	ShmSize               Str            `yaml:"shm-size"`
	Ports                 List           `yaml:"ports"`
	MgmtIPv4              Str            `yaml:"mgmt-ipv4"`
	MgmtIPv6              Str            `yaml:"mgmt-ipv6"`
	Env                   Map            `yaml:"env"`
	EnvFiles              List           `yaml:"env-files"`
	User                  Str            `yaml:"user"`
	Labels                Map            `yaml:"labels"`
	NetworkMode           Str            `yaml:"network-mode"`
	Runtime               Str            `yaml:"runtime"`
	CPU                   Float          `yaml:"cpu"`
	CPUSet                Str            `yaml:"cpu-set"`
	Memory                Str            `yaml:"memory"`
	Sysctls               Map            `yaml:"sysctls"`
	Extras                *Extras        `yaml:"extras"`
	Stages                *Stages        `yaml:"stages"`
	DNS                   *DNS           `yaml:"dns"`
	Certificate           *Certificate   `yaml:"certificate"`
	Healthcheck           *Healthcheck   `yaml:"healthcheck"`
	Credentials           *Credentials   `yaml:"credentials"`
	Username              Str            `yaml:"username"`
	Password              Str            `yaml:"password"`
	Aliases               List           `yaml:"aliases"`
	Components            *ComponentList `yaml:"components"`
	LinkApplyMode         Str            `yaml:"link-apply-mode"`
	MgmtNet               Str            `yaml:"mgmt-net"`

	// Keys are the keys that are not containerlab's generic ones, in the order of
	// the file: each belongs to a kind, or is unknown.
	Keys []Key
}

// ConfigVars is the config block.
type ConfigVars struct {
	Pos  diag.Pos
	Vars AnyMap `yaml:"vars"`
}

// Extras are kind-specific parameters.
type Extras struct {
	Pos             diag.Pos
	SRLAgents       List     `yaml:"srl-agents"`
	MysocketProxy   Str      `yaml:"mysocket-proxy"`
	CEOSCopyToFlash List     `yaml:"ceos-copy-to-flash"`
	K8sKind         *K8sKind `yaml:"k8s_kind"`
	FRR             *FRR     `yaml:"frr"`
}

// FRR is extras.frr.
type FRR struct {
	Pos     diag.Pos
	Daemons *Value `yaml:"daemons"`
}

// K8sKind is extras.k8s_kind.
type K8sKind struct {
	Pos    diag.Pos
	Deploy *K8sKindDeploy `yaml:"deploy"`
}

// K8sKindDeploy is extras.k8s_kind.deploy.
type K8sKindDeploy struct {
	Pos        diag.Pos
	Kubeconfig Str `yaml:"kubeconfig"`
	Wait       Str `yaml:"wait"`
}

// DNS is the dns block.
type DNS struct {
	Pos     diag.Pos
	Servers List `yaml:"servers"`
	Options List `yaml:"options"`
	Search  List `yaml:"search"`
}

// Certificate is the certificate block.
type Certificate struct {
	Pos              diag.Pos
	Issue            Bool `yaml:"issue"`
	KeySize          Int  `yaml:"key-size"`
	ValidityDuration Str  `yaml:"validity-duration"`
	SANs             List `yaml:"sans"`
}

// Healthcheck is the healthcheck block; times are in seconds.
type Healthcheck struct {
	Pos         diag.Pos
	Test        List `yaml:"test"`
	Interval    Int  `yaml:"interval"`
	Timeout     Int  `yaml:"timeout"`
	Retries     Int  `yaml:"retries"`
	StartPeriod Int  `yaml:"start-period"`
}

// Credentials is the credentials block.
type Credentials struct {
	Pos          diag.Pos
	Username     Str `yaml:"username"`
	Password     Str `yaml:"password"`
	IdentityFile Str `yaml:"identity-file"`
}

// ComponentList is the components list; an empty one counts as set.
type ComponentList struct {
	Items []Component
}

// Component is a card of a chassis.
type Component struct {
	Pos  diag.Pos
	Slot Str    `yaml:"slot"`
	Type Str    `yaml:"type"`
	Env  Map    `yaml:"env"`
	SFM  Str    `yaml:"sfm"`
	XIOM []XIOM `yaml:"xiom"`
	MDA  []MDA  `yaml:"mda"`
	// CPU, RAM (GB) and MaxNICs are those of a card of the kind nokia_sros.
	CPU     Int `yaml:"cpu"`
	RAM     Int `yaml:"ram"`
	MaxNICs Int `yaml:"max-nics"`
}

// XIOM is an XIOM of a component.
type XIOM struct {
	Pos  diag.Pos
	Slot Int   `yaml:"slot"`
	Type Str   `yaml:"type"`
	MDA  []MDA `yaml:"mda"`
}

// MDA is an MDA of a component or of an XIOM.
type MDA struct {
	Pos  diag.Pos
	Slot Int `yaml:"slot"`
	Type Str `yaml:"type"`
}

// Stages is the stages block.
type Stages struct {
	Pos         diag.Pos
	Create      *Stage `yaml:"create"`
	CreateLinks *Stage `yaml:"create-links"`
	Configure   *Stage `yaml:"configure"`
	Healthy     *Stage `yaml:"healthy"`
	Exit        *Stage `yaml:"exit"`
}

// Stage is one stage.
type Stage struct {
	Pos     diag.Pos
	WaitFor []WaitFor   `yaml:"wait-for"`
	Exec    []StageExec `yaml:"exec"`
}

// WaitFor is an entry of wait-for.
type WaitFor struct {
	Pos   diag.Pos
	Node  Str `yaml:"node"`
	Stage Str `yaml:"stage"`
}

// StageExec is an entry of a stage's exec.
type StageExec struct {
	Pos     diag.Pos
	Command Str `yaml:"command"`
	Target  Str `yaml:"target"`
	Phase   Str `yaml:"phase"`
}
