package capture

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Line describes a frame for the terminal: time, interface, direction, ends, protocol, length.
func Line(name string, f *Frame) string {
	way := "<"
	if f.Direction == Out {
		way = ">"
	}
	return fmt.Sprintf("%s %s %s %s, %d bytes", time.Unix(0, f.Time).Format("15:04:05.000000"), name, way, Summary(f.Data), f.Length)
}

// Summary describes a frame by its ends and its protocol.
func Summary(data []byte) string {
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true, Lazy: false})
	ends, text := "", ""
	var ports func() (string, string)
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.Ethernet:
			ends = l.SrcMAC.String() + " > " + l.DstMAC.String()
			text = etherName(l)
		case *layers.Dot1Q:
			text = fmt.Sprintf("vlan %d, %s", l.VLANIdentifier, l.Type)
		case *layers.ARP:
			text = arpText(l)
		case *layers.IPv4:
			ends, text = l.SrcIP.String()+" > "+l.DstIP.String(), l.Protocol.String()
			ports = func() (string, string) { return l.SrcIP.String(), l.DstIP.String() }
		case *layers.IPv6:
			ends, text = l.SrcIP.String()+" > "+l.DstIP.String(), l.NextHeader.String()
			ports = func() (string, string) { return l.SrcIP.String(), l.DstIP.String() }
		case *layers.TCP:
			if ports != nil {
				ends = withPorts(ports, uint16(l.SrcPort), uint16(l.DstPort))
			}
			text = fmt.Sprintf("TCP %s, %d bytes of data", flags(l), len(l.Payload))
		case *layers.UDP:
			if ports != nil {
				ends = withPorts(ports, uint16(l.SrcPort), uint16(l.DstPort))
			}
			text = "UDP"
		case *layers.ICMPv4:
			text = "ICMP " + l.TypeCode.String()
		case *layers.ICMPv6:
			text = "ICMPv6 " + l.TypeCode.String()
		default:
			switch name := l.LayerType().String(); name {
			case "Payload", "DecodeFailure", "Fragment":
			default:
				text = name
			}
		}
	}
	if ends == "" {
		return "a frame that is too short"
	}
	return strings.TrimSpace(ends + " " + text)
}

func etherName(l *layers.Ethernet) string {
	if l.EthernetType == layers.EthernetTypeLLC {
		return "LLC"
	}
	if text := l.EthernetType.String(); !strings.HasPrefix(text, "Unknown") {
		return text
	}
	return fmt.Sprintf("EtherType 0x%04x", uint16(l.EthernetType))
}

func withPorts(ends func() (string, string), from, to uint16) string {
	a, b := ends()
	return join(a, from) + " > " + join(b, to)
}

func join(address string, port uint16) string {
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	return address + ":" + strconv.Itoa(int(port))
}

func arpText(l *layers.ARP) string {
	from, _ := netip.AddrFromSlice(l.SourceProtAddress)
	to, _ := netip.AddrFromSlice(l.DstProtAddress)
	if l.Operation == layers.ARPRequest {
		return fmt.Sprintf("ARP who has %s, tell %s", to, from)
	}
	return fmt.Sprintf("ARP %s is at %x", from, l.SourceHwAddress)
}

func flags(l *layers.TCP) string {
	var list []string
	for _, f := range []struct {
		set  bool
		name string
	}{{l.SYN, "SYN"}, {l.FIN, "FIN"}, {l.RST, "RST"}, {l.PSH, "PSH"}, {l.ACK, "ACK"}, {l.URG, "URG"}} {
		if f.set {
			list = append(list, f.name)
		}
	}
	return strings.Join(list, " ")
}
