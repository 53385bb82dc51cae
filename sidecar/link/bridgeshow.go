package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// BridgeObjects are the objects that ShowBridge can print, named as in bridge(8).
var BridgeObjects = []string{"fdb", "link", "vlan", "mdb"}

// ShowBridge prints an object of a bridge node of the namespace that the calling thread
// is in, as "bridge OBJECT show" does.
func ShowBridge(node, object string) (string, error) {
	br, err := netlink.LinkByName(LinuxName("", node))
	if err != nil || br.Type() != "bridge" {
		return "", fmt.Errorf("there is no bridge %s", node)
	}
	b := &shownBridge{index: br.Attrs().Index, name: br.Attrs().Name, ports: map[int]string{}}
	links, err := netlink.LinkList()
	if err != nil {
		return "", fmt.Errorf("ports of bridge %s: %w", node, err)
	}
	for _, l := range links {
		if l.Attrs().MasterIndex == b.index {
			b.ports[l.Attrs().Index] = l.Attrs().Name
			b.order = append(b.order, l)
		}
	}
	show, ok := map[string]func() (string, error){"fdb": b.fdb, "link": b.link, "vlan": b.vlan, "mdb": b.mdb}[object]
	if !ok {
		return "", fmt.Errorf("bridge %s: there are %s", object, strings.Join(BridgeObjects, ", "))
	}
	text, err := show()
	if err != nil {
		return "", fmt.Errorf("%s of bridge %s: %w", object, node, err)
	}
	return text, nil
}

type shownBridge struct {
	index int
	name  string
	ports map[int]string
	order []netlink.Link
}

// nameOf is a port's name, or the bridge's own.
func (b *shownBridge) nameOf(index int) (string, bool) {
	if index == b.index {
		return b.name, true
	}
	name, ok := b.ports[index]
	return name, ok
}

func (b *shownBridge) fdb() (string, error) {
	entries, err := netlink.NeighList(0, unix.AF_BRIDGE)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, n := range entries {
		name, ok := b.nameOf(n.LinkIndex)
		if !ok {
			continue
		}
		fmt.Fprintf(&out, "%s dev %s", n.HardwareAddr, name)
		if n.Vlan > 0 {
			fmt.Fprintf(&out, " vlan %d", n.Vlan)
		}
		if n.MasterIndex == b.index {
			fmt.Fprintf(&out, " master %s", b.name)
		}
		if n.Flags&netlink.NTF_SELF != 0 {
			out.WriteString(" self")
		}
		switch {
		case n.State&netlink.NUD_PERMANENT != 0:
			out.WriteString(" permanent")
		case n.State&netlink.NUD_NOARP != 0:
			out.WriteString(" static")
		}
		out.WriteByte('\n')
	}
	return out.String(), nil
}

// portStates are the kernel's BR_STATE_* (linux/if_bridge.h).
var portStates = []string{"disabled", "listening", "learning", "forwarding", "blocking"}

func (b *shownBridge) link() (string, error) {
	data, err := portData()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, l := range b.order {
		a := l.Attrs()
		fmt.Fprintf(&out, "%d: %s: <%s> mtu %d master %s", a.Index, a.Name, linkFlags(a.RawFlags), a.MTU, b.name)
		p := data[a.Index]
		if state := int(p.state); state < len(portStates) {
			fmt.Fprintf(&out, " state %s priority %d cost %d", portStates[state], p.priority, p.cost)
		}
		out.WriteByte('\n')
	}
	return out.String(), nil
}

// linkFlags are an interface's flags as ip(8) writes them.
func linkFlags(flags uint32) string {
	var words []string
	if flags&unix.IFF_UP != 0 && flags&unix.IFF_RUNNING == 0 {
		words = append(words, "NO-CARRIER")
	}
	for _, f := range []struct {
		bit  uint32
		name string
	}{{unix.IFF_BROADCAST, "BROADCAST"}, {unix.IFF_MULTICAST, "MULTICAST"}, {unix.IFF_PROMISC, "PROMISC"}, {unix.IFF_UP, "UP"}, {unix.IFF_LOWER_UP, "LOWER_UP"}} {
		if flags&f.bit != 0 {
			words = append(words, f.name)
		}
	}
	return strings.Join(words, ",")
}

// bridgePort is the kernel's state of a port.
type bridgePort struct {
	state    uint8
	priority uint16
	cost     uint32
}

// Attributes of a port (IFLA_BRPORT_*, linux/if_link.h).
const (
	portState    = 1
	portPriority = 2
	portCost     = 3
)

// portData reads the ports' states, which the library leaves out.
func portData() (map[int]bridgePort, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	request.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	messages, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return nil, err
	}
	out := map[int]bridgePort{}
	for _, m := range messages {
		index := int(nl.DeserializeIfInfomsg(m).Index)
		data := within(m[unix.SizeofIfInfomsg:], unix.IFLA_LINKINFO, unix.IFLA_INFO_SLAVE_DATA)
		attrs, err := nl.ParseRouteAttr(data)
		if err != nil {
			continue
		}
		p := bridgePort{state: uint8(len(portStates))}
		for _, a := range attrs {
			switch {
			case a.Attr.Type == portState && len(a.Value) >= 1:
				p.state = a.Value[0]
			case a.Attr.Type == portPriority && len(a.Value) >= 2:
				p.priority = binary.NativeEndian.Uint16(a.Value)
			case a.Attr.Type == portCost && len(a.Value) >= 4:
				p.cost = binary.NativeEndian.Uint32(a.Value)
			}
		}
		out[index] = p
	}
	return out, nil
}

// within returns the value of a nested attribute.
func within(data []byte, path ...uint16) []byte {
	for _, kind := range path {
		attrs, err := nl.ParseRouteAttr(data)
		if err != nil {
			return nil
		}
		i := slices.IndexFunc(attrs, func(a syscall.NetlinkRouteAttr) bool { return a.Attr.Type&nl.NLA_TYPE_MASK == kind })
		if i < 0 {
			return nil
		}
		data = attrs[i].Value
	}
	return data
}

func (b *shownBridge) vlan() (string, error) {
	all, err := netlink.BridgeVlanList()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-18s%s\n", "port", "vlan-id")
	show := func(index int, name string) {
		for i, v := range all[int32(index)] {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&out, "%-18s%d", name, v.Vid)
			if v.PortVID() {
				out.WriteString(" PVID")
			}
			if v.EngressUntag() {
				out.WriteString(" Egress Untagged")
			}
			out.WriteByte('\n')
		}
	}
	for _, l := range b.order {
		show(l.Attrs().Index, l.Attrs().Name)
	}
	show(b.index, b.name)
	return out.String(), nil
}

// Attributes and sizes of the multicast database (linux/if_bridge.h): MDBA_MDB holds
// MDBA_MDB_ENTRY, which holds MDBA_MDB_ENTRY_INFO, a struct br_mdb_entry.
const (
	mdbAttr      = 1
	mdbPermanent = 1
	portMsgSize  = 8
	mdbEntrySize = 28
	mdbFamilyIP  = 0x0008 // ETH_P_IP, big-endian in the struct
	mdbFamilyIP6 = 0xdd86
)

func (b *shownBridge) mdb() (string, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETMDB, unix.NLM_F_DUMP)
	request.AddRawData(append([]byte{unix.AF_BRIDGE}, make([]byte, portMsgSize-1)...))
	messages, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_GETMDB)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, m := range messages {
		if len(m) < portMsgSize || int(binary.NativeEndian.Uint32(m[4:])) != b.index {
			continue
		}
		entries, err := nl.ParseRouteAttr(within(m[portMsgSize:], mdbAttr))
		if err != nil {
			return "", err
		}
		for _, entry := range entries {
			infos, err := nl.ParseRouteAttr(entry.Value)
			if err != nil {
				return "", err
			}
			for _, info := range infos {
				b.mdbEntry(&out, info.Value)
			}
		}
	}
	return out.String(), nil
}

func (b *shownBridge) mdbEntry(out *strings.Builder, v []byte) {
	if len(v) < mdbEntrySize {
		return
	}
	port, ok := b.nameOf(int(binary.NativeEndian.Uint32(v)))
	if !ok {
		return
	}
	group := net.HardwareAddr(v[8:14]).String()
	switch binary.LittleEndian.Uint16(v[24:]) {
	case mdbFamilyIP:
		group = netip.AddrFrom4([4]byte(v[8:12])).String()
	case mdbFamilyIP6:
		group = netip.AddrFrom16([16]byte(v[8:24])).String()
	}
	state := "temp"
	if v[4] == mdbPermanent {
		state = "permanent"
	}
	fmt.Fprintf(out, "dev %s port %s grp %s %s", b.name, port, group, state)
	if vid := binary.NativeEndian.Uint16(v[6:]); vid > 0 {
		fmt.Fprintf(out, " vid %d", vid)
	}
	out.WriteByte('\n')
}
