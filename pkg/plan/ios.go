package plan

// IOSData is the data of the templates of cisco_iol and cisco_vios, both the default and the
// user's: containerlab passes these fields instead of the node's.
type IOSData struct {
	Hostname           string
	Username, Password string
	// IsL2Node is set if the node is a switch.
	IsL2Node bool
	// MgmtSlot and MgmtPort are those of the management interface of an IOL.
	MgmtSlot, MgmtPort int
	MgmtIPv4Addr       string
	MgmtIPv4SubnetMask string
	MgmtIPv4GW         string
	MgmtIPv6Addr       string
	MgmtIPv6PrefixLen  int
	MgmtIPv6GW         string
	DataIFaces         []IOSInterface
	// PartialCfg is the text of a partial startup-config.
	PartialCfg string
}

// IOSInterface is a data interface of an IOL.
type IOSInterface struct {
	// IfaceName is the Linux name, IfaceIdx its number.
	IfaceName  string
	IfaceIdx   int
	Slot, Port int
	IPv4Addr   string
	IPv4Mask   string
	// IPv6Addr is with prefix length.
	IPv6Addr string
}

func newIOSData(x *NodeData) *IOSData {
	out := &IOSData{
		Hostname: x.ShortName, Username: x.Credentials.Username, Password: x.Credentials.Password,
		IsL2Node: x.TypeData["layer"] == "2", MgmtSlot: x.MgmtSlot, MgmtPort: x.MgmtPort,
		MgmtIPv4Addr: x.MgmtIPv4Address, MgmtIPv4SubnetMask: x.MgmtIPv4Mask(), MgmtIPv4GW: x.MgmtIPv4Gateway,
		MgmtIPv6Addr: x.MgmtIPv6Address, MgmtIPv6PrefixLen: x.MgmtIPv6PrefixLength, MgmtIPv6GW: x.MgmtIPv6Gateway,
		PartialCfg: x.PartialCfg,
	}
	for _, e := range x.endpoints {
		out.DataIFaces = append(out.DataIFaces, IOSInterface{
			IfaceName: e.Name, IfaceIdx: e.Number, Slot: e.Slot, Port: e.Port,
			IPv4Addr: e.IPv4Address, IPv4Mask: e.IPv4Mask, IPv6Addr: e.IPv6,
		})
	}
	return out
}
