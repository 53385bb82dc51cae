package plan

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// endpointData describes the node's link ends for templates.
func endpointData(l *lab.Lab, n *lab.Node) []EndpointData {
	out := make([]EndpointData, len(n.Endpoints))
	for i, e := range n.Endpoints {
		x := EndpointData{Name: e.Interface, Alias: e.Alias, IPv4: prefixText(e.IPv4), IPv6: prefixText(e.IPv6)}
		if e.IPv4.IsValid() {
			x.IPv4Address, x.IPv4Mask = e.IPv4.Addr().String(), ipv4Mask(e.IPv4.Bits())
		}
		x.Number = firstNumber(e.Interface)
		x.Slot, x.Port = x.Number/4, x.Number%4
		if e.Link >= 0 && e.Link < len(l.Links) && l.Links[e.Link].MTU != lab.DefaultLinkMTU {
			x.MTU = l.Links[e.Link].MTU
		}
		out[i] = x
	}
	return out
}

func prefixText(p netip.Prefix) string {
	if !p.IsValid() {
		return ""
	}
	return p.String()
}

// ipv4Mask returns the mask of a prefix length, "" for 0.
func ipv4Mask(bits int) string {
	if bits == 0 {
		return ""
	}
	m := ^uint32(0) << (32 - bits)
	return netip.AddrFrom4([4]byte{byte(m >> 24), byte(m >> 16), byte(m >> 8), byte(m)}).String()
}

// firstNumber returns the first run of digits in a name, 0 without one.
func firstNumber(name string) int {
	i := strings.IndexAny(name, "0123456789")
	if i < 0 {
		return 0
	}
	end := i
	for end < len(name) && name[end] >= '0' && name[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(name[i:end])
	return n
}

// SRLPort is a link end as SR Linux calls it.
type SRLPort struct {
	// Base is the port ("ethernet-1/1"), Full with its channel ("ethernet-1/1/2").
	Base, Full string
	// Breakout is set if the port is broken out into channels.
	Breakout   bool
	MTU        int
	IPv4, IPv6 string
}

// SRLPorts returns the node's data ports, without other ends of links.
func (x *NodeData) SRLPorts() []SRLPort {
	ports := make([]SRLPort, 0, len(x.endpoints))
	for i := range x.endpoints {
		e := &x.endpoints[i]
		name, ok := strings.CutPrefix(e.Name, "e")
		card, rest, isPort := strings.Cut(name, "-")
		if !ok || !isPort {
			continue
		}
		port, channel, breakout := strings.Cut(rest, "-")
		p := SRLPort{Base: "ethernet-" + card + "/" + port, Breakout: breakout, MTU: e.MTU, IPv4: e.IPv4, IPv6: e.IPv6}
		p.Full = p.Base
		if breakout {
			p.Full += "/" + channel
		}
		ports = append(ports, p)
	}
	return ports
}
