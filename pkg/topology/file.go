// Package topology reads a containerlab topology file, strictly and with the
// position of every value. It covers containerlab's vocabulary and is independent
// of Kubernetes.
package topology

import "github.com/c9s-lab/c9s/pkg/diag"

// File is a topology file as written, after templates and environment expansion.
type File struct {
	// Path names the file in diagnostics. Dir is the folder that relative paths
	// in the topology start from, "" if it was read from standard input or a
	// URL.
	Path string
	Dir  string
	// Uses are the fields that are not Supported, in the order of the file.
	Uses []Use
	// Newer are the fields that containerlab 0.79 does not have.
	Newer []Use

	Name     Str       `yaml:"name"`
	Prefix   PrefixStr `yaml:"prefix"`
	Mgmt     *Mgmt     `yaml:"mgmt"`
	Settings *Settings `yaml:"settings"`
	Topology *Topology `yaml:"topology"`
	Debug    Bool      `yaml:"debug"`

	blocks []block
}

// PrefixStr is a string where the empty text differs from its absence.
type PrefixStr struct {
	Str
	Set bool
}

// Mgmt is the mgmt block.
type Mgmt struct {
	Pos            diag.Pos
	Network        Str  `yaml:"network"`
	Bridge         Str  `yaml:"bridge"`
	IPv4Subnet     Str  `yaml:"ipv4-subnet"`
	IPv4Gateway    Str  `yaml:"ipv4-gw"`
	IPv4Range      Str  `yaml:"ipv4-range"`
	IPv6Subnet     Str  `yaml:"ipv6-subnet"`
	IPv6Gateway    Str  `yaml:"ipv6-gw"`
	IPv6Range      Str  `yaml:"ipv6-range"`
	MTU            Int  `yaml:"mtu"`
	ExternalAccess Bool `yaml:"external-access"`
	SkipWhenUnused Bool `yaml:"skip-when-unused"`
	DriverOpts     Map  `yaml:"driver-opts"`
	OldIPv4Subnet  Str  `yaml:"ipv4_subnet"`
	OldIPv6Subnet  Str  `yaml:"ipv6_subnet"`

	Driver        Str        `yaml:"driver"`
	MacvlanParent Str        `yaml:"macvlan-parent"`
	MacvlanMode   Str        `yaml:"macvlan-mode"`
	MacvlanAux    Bool       `yaml:"macvlan-aux"`
	IPAM          *IPAM      `yaml:"ipam"`
	Tailscale     *Tailscale `yaml:"tailscale"`

	// List is set if the file has a list of networks. Others are those after the first.
	List   bool
	Others []Mgmt
}

// IPAM is mgmt.ipam.
type IPAM struct {
	Pos      diag.Pos
	Provider Str  `yaml:"provider"`
	DAD      Bool `yaml:"dad"`
}

// Tailscale is mgmt.tailscale.
type Tailscale struct {
	Pos      diag.Pos
	AuthKey  Str `yaml:"auth-key"`
	AuthMode Str `yaml:"auth-mode"`
}

// Settings is the settings block.
type Settings struct {
	Pos                  diag.Pos
	CertificateAuthority *CertificateAuthority `yaml:"certificate-authority"`
}

// CertificateAuthority is settings.certificate-authority.
type CertificateAuthority struct {
	Pos              diag.Pos
	Cert             Str `yaml:"cert"`
	Key              Str `yaml:"key"`
	KeySize          Int `yaml:"key-size"`
	ValidityDuration Str `yaml:"validity-duration"`
}

// Topology is the topology block.
type Topology struct {
	Pos      diag.Pos
	Defaults *NodeDef `yaml:"defaults"`
	Kinds    Defs     `yaml:"kinds"`
	Groups   Defs     `yaml:"groups"`
	Nodes    Defs     `yaml:"nodes"`
	Links    Links    `yaml:"links"`
}

// Defs are named node definitions in the order of the file.
type Defs struct {
	Items []Def
	// Broken is set if the file has something else in their place.
	Broken bool
	index  map[string]int
}

// Def is one entry of kinds, groups or nodes. Node is nil where the file has
// the name and nothing under it.
type Def struct {
	Name string
	Pos  diag.Pos
	Node *NodeDef
}

// Get returns the definition of that very name.
func (d Defs) Get(name string) (*NodeDef, bool) {
	i, ok := d.index[name]
	if !ok {
		return nil, false
	}
	return d.Items[i].Node, true
}
