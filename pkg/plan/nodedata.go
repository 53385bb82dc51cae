package plan

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// NodeData is the data of templates in the catalogue and in a startup-config:
// containerlab's names for the facts of the node, followed by what the catalogue needs in
// addition. It holds no certificate, because certificates are issued after planning.
type NodeData struct {
	ShortName string
	LongName  string
	Hostname  string
	Fqdn      string
	// Index is lab.Node's: unique in the lab, from 1 on.
	Index       int
	Group       string
	Kind        string
	NodeType    string
	Position    string
	Image       string
	User        string
	NetworkMode string
	Runtime     string
	Env         map[string]string
	Labels      map[string]string
	Sysctls     map[string]string
	Aliases     []string
	CPU         float64
	CPUSet      string
	// Memory is in bytes, as a decimal number; "" if not set.
	Memory        string
	RestartPolicy string
	MgmtNet       string
	// MgmtIntf is the device's own name of its management interface.
	MgmtIntf             string
	MgmtIPv4Address      string
	MgmtIPv4PrefixLength int
	MgmtIPv4Gateway      string
	MgmtIPv6Address      string
	MgmtIPv6PrefixLength int
	MgmtIPv6Gateway      string
	MacAddress           string
	Credentials          lab.Credentials
	// StartupConfig and License are the sources of the files, "" without one.
	StartupConfig         string
	License               string
	EnforceStartupConfig  bool
	SuppressStartupConfig bool
	Config                ConfigData
	Components            []lab.Component
	DNS                   *lab.DNS

	// LabName, MgmtSubnetIPv4 and MgmtSubnetIPv6 are the lab's; MgmtMTU is bytes.
	LabName        string
	MgmtSubnetIPv4 string
	MgmtSubnetIPv6 string
	MgmtMTU        int
	// TypeData are the properties that the catalogue has for the node's type.
	TypeData map[string]string
	// Keys are the keys of the kind that the node sets, and the defaults of the others.
	Keys map[string]any
	// ImageTag is the image's tag, "" without one.
	ImageTag string
	// StartupName is the base name of the startup-config file.
	StartupName string
	// PartialCfg is a partial startup-config, LicenseText the licence's text, for
	// configurations that hold them.
	PartialCfg  string
	LicenseText string
	// CertificateIssue is set if the lab's CA issues a certificate to the node.
	CertificateIssue bool

	// SRLCards are the slots of an SR Linux chassis.
	SRLCards []SRLCard
	// MgmtSlot and MgmtPort are those of the management port of an IOL.
	MgmtSlot, MgmtPort int

	// PortLines are the lines of ports.conf of a switch with breakouts, nil without.
	PortLines []string

	endpoints []EndpointData
}

// ConfigData is config: of the topology.
type ConfigData struct {
	Vars map[string]any
}

// EndpointData is a link end of the node.
type EndpointData struct {
	// Name is the Linux name, Alias the topology's where that differs.
	Name, Alias string
	// IPv4 and IPv6 are with prefix length ("192.0.2.1/24"), "" without one.
	IPv4, IPv6 string
	// IPv4Address and IPv4Mask are IPv4 in two parts ("255.255.255.0").
	IPv4Address, IPv4Mask string
	// Number is the first number in Name, Slot and Port are it divided by four.
	Number, Slot, Port int
	// MTU is the MTU of the link, 0 if it is the default.
	MTU int
}

func newNodeData(d *draft) *NodeData {
	n, l := d.node, d.lab
	out := &NodeData{
		ShortName: n.Name, LongName: n.LongName, Hostname: n.Hostname, Fqdn: n.FQDN, Index: max(n.Index, 1),
		Group: n.Group, Kind: cmp.Or(n.WrittenKind, n.Kind), NodeType: strings.TrimSpace(n.Type), Position: n.Position,
		Image: n.Image, ImageTag: imageTag(n.Image), User: n.User, NetworkMode: string(n.NetworkMode), Aliases: n.Aliases,
		Env: maps.Clone(n.Env), Sysctls: n.Sysctls, CPU: n.CPU, CPUSet: n.CPUSet, RestartPolicy: n.RestartPolicy,
		MgmtNet: l.Mgmt.Network, MgmtIntf: d.kind.MgmtInterface, MgmtMTU: l.Mgmt.MTU, LabName: l.Name,
		Credentials: lab.Credentials{
			Username: cmp.Or(n.Credentials.Username, d.kind.Credentials.Username),
			Password: cmp.Or(n.Credentials.Password, d.kind.Credentials.Password),
		},
		EnforceStartupConfig: n.EnforceStartupConfig, SuppressStartupConfig: n.SuppressStartupConfig,
		Config: ConfigData{Vars: n.ConfigVars}, Components: n.Components, DNS: n.DNS,
		CertificateIssue: d.kind.Certificate == "always" || d.kind.Certificate == "optional" && n.Certificate.Issue,
		TypeData:         map[string]string{}, Keys: keyValues(d.kind, n),
	}
	if out.Env == nil {
		out.Env = map[string]string{}
	}
	if n.NetworkMode == lab.NetworkContainer {
		out.NetworkMode = "container:" + n.NetworkNode
	}
	if n.Memory > 0 {
		out.Memory = strconv.FormatInt(n.Memory, 10)
	}
	if n.StartupConfig != nil {
		out.StartupConfig, out.StartupName = cmp.Or(n.StartupConfig.File.Origin, n.StartupConfig.Name), n.StartupConfig.Name
	}
	if n.License != nil {
		out.License = cmp.Or(n.License.Origin, "license")
	}
	if layout, err := kinds.NewBreakouts(n); err == nil && layout != nil {
		out.PortLines = layout.Lines()
	}
	out.management(l, n)
	return out
}

// keyValues returns the values of the kind's keys: the node's, or else the defaults.
func keyValues(k *kinds.Kind, n *lab.Node) map[string]any {
	out := make(map[string]any, len(k.Keys))
	for name, key := range k.Keys {
		if v, ok := n.Keys[name]; ok {
			out[name] = v
			continue
		}
		switch key.Type {
		case kinds.KeyBoolean:
			out[name] = key.Default == "true"
		case kinds.KeyInteger:
			i, _ := strconv.Atoi(key.Default)
			out[name] = i
		case kinds.KeyText, kinds.KeyFile: // a list is empty
			out[name] = key.Default
		}
	}
	return out
}

// management sets the addresses, gateways and subnets of the address families in use.
func (x *NodeData) management(l *lab.Lab, n *lab.Node) {
	if f := l.Mgmt.IPv4; f.Subnet.IsValid() {
		x.MgmtSubnetIPv4 = f.Subnet.String()
		if f.Gateway.IsValid() {
			x.MgmtIPv4Gateway = f.Gateway.String()
		}
		if n.MgmtIPv4.IsValid() {
			x.MgmtIPv4Address, x.MgmtIPv4PrefixLength = n.MgmtIPv4.String(), f.Subnet.Bits()
		}
	}
	if f := l.Mgmt.IPv6; f.Subnet.IsValid() {
		x.MgmtSubnetIPv6 = f.Subnet.String()
		if f.Gateway.IsValid() {
			x.MgmtIPv6Gateway = f.Gateway.String()
		}
		if n.MgmtIPv6.IsValid() {
			x.MgmtIPv6Address, x.MgmtIPv6PrefixLength = n.MgmtIPv6.String(), f.Subnet.Bits()
		}
	}
}

// hash depends only on the names of the lab and the node.
func (x *NodeData) hash() [sha256.Size]byte {
	return sha256.Sum256([]byte(x.LabName + "\x00" + x.ShortName))
}

// HashMAC returns an address of a vendor's three bytes ("00:1c:73") and three bytes derived
// from the names of the lab and the node.
func (x *NodeData) HashMAC(vendor string) string {
	h := x.hash()
	return fmt.Sprintf("%s:%02x:%02x:%02x", vendor, h[0], h[1], h[2])
}

// IndexMAC returns an address of a first byte ("1a"), one byte for the lab, one for the
// node's index and three zero bytes, as a block for the device's ports.
func (x *NodeData) IndexMAC(first string) string {
	h := sha256.Sum256([]byte(x.LabName))
	return fmt.Sprintf("%s:%02x:%02x:00:00:00", first, h[0]+byte(x.Index>>8), byte(x.Index))
}

// NextMAC returns mac with its last byte incremented.
func (x *NodeData) NextMAC(mac string) string {
	i := strings.LastIndexByte(mac, ':')
	last, err := strconv.ParseUint(mac[i+1:], 16, 8)
	if err != nil {
		return mac
	}
	return fmt.Sprintf("%s:%02x", mac[:i], byte(last)+1)
}

// IOLID returns the application id of an IOL: 1 to 1023 without 513, which is the id of the
// far side of its links. The key pid-offset is added to the index.
func (x *NodeData) IOLID() int {
	offset, _ := x.Keys["pid-offset"].(int)
	return IOLID(x.Index + offset)
}

// IOLID returns the application id of the IOL with an index.
func IOLID(index int) int {
	id := (max(index, 1)-1)%1022 + 1
	if id >= 513 {
		id++
	}
	return id
}

// Endpoints returns the node's link ends in order.
func (x *NodeData) Endpoints() []EndpointData { return x.endpoints }

// MgmtIPv4Mask returns the mask of the management address ("255.255.255.0").
func (x *NodeData) MgmtIPv4Mask() string { return ipv4Mask(x.MgmtIPv4PrefixLength) }

// imageTag returns what follows the last colon in the name part of an image.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[i+1:]
	}
	return ""
}
