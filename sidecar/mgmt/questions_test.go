package mgmt

import (
	"bytes"
	"net/netip"
	"testing"
)

// frame is an Ethernet frame of a type to a station, with a body.
func frame(to byte, etherType uint16, body ...byte) []byte {
	head := append(bytes.Repeat([]byte{to}, 6), 2, 0, 0, 0, 0, 1, byte(etherType>>8), byte(etherType))
	return append(head, body...)
}

var (
	// arp asks for 10.0.0.9 (RFC 826), or answers.
	arp = func(op byte) []byte {
		return []byte{0, 1, 8, 0, 6, 4, 0, op, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 9}
	}
	// solicit asks for fd00::9 (RFC 4861, 4.3): IPv6's header, type, code, checksum,
	// reserved, target.
	solicit = append(append(make([]byte, 40), 135, 0, 0, 0, 0, 0, 0, 0), netip.MustParseAddr("fd00::9").AsSlice()...)
)

func TestQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		frame []byte
		want  string
	}{
		"ARP request":               {frame(0xff, ethARP, arp(arpRequest)...), "10.0.0.9"},
		"ARP reply":                 {frame(0xff, ethARP, arp(2)...), ""},
		"ARP request to one":        {frame(2, ethARP, arp(arpRequest)...), ""},
		"ARP request, cut off":      {frame(0xff, ethARP, arp(arpRequest)[:27]...), ""},
		"neighbour solicitation":    {frame(0x33, ethIPv6, solicit...), "fd00::9"},
		"neighbour solicitation to": {frame(2, ethIPv6, solicit...), ""},
		"solicitation, cut off":     {frame(0x33, ethIPv6, solicit[:len(solicit)-1]...), ""},
		"something else":            {frame(0xff, 0x0800, solicit...), ""},
		"nothing":                   {nil, ""},
	} {
		a, ok := question(c.frame)
		if got := a.String(); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: %q %v, want %q", name, got, ok, c.want)
		}
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add(frame(0xff, ethARP, arp(arpRequest)...))
	f.Add(frame(0x33, ethIPv6, solicit...))
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, ok := question(data); ok && (!a.IsValid() || !bytes.Contains(data, a.AsSlice())) {
			t.Errorf("%v is not in the frame", a)
		}
	})
}
