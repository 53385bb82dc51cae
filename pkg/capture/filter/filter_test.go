package filter

import (
	"encoding/hex"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
)

// packet is a frame for the tests.
type packet struct {
	dst, src  string // MAC addresses in hex
	tag       string // of VLAN, in hex
	kind      string // EtherType in hex
	payload   []byte
	fragment  uint16
	options   int // bytes of IPv4 options
	transport byte
	from, to  string
	ports     [2]uint16
}

func (p packet) bytes(t *testing.T) []byte {
	t.Helper()
	h := func(s, or string) []byte {
		if s == "" {
			s = or
		}
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := slices.Concat(h(p.dst, "0200000000b2"), h(p.src, "0200000000a1"), h(p.tag, ""))
	body := p.payload
	if p.from != "" {
		from, to := netip.MustParseAddr(p.from), netip.MustParseAddr(p.to)
		ports := []byte{byte(p.ports[0] >> 8), byte(p.ports[0]), byte(p.ports[1] >> 8), byte(p.ports[1]), 0, 0, 0, 0, 0x50, 2, 0, 0}
		switch {
		case p.kind == "0806":
			body = slices.Concat([]byte{0, 1, 8, 0, 6, 4, 0, 1}, h(p.src, "0200000000a1"), from.AsSlice(), make([]byte, 6), to.AsSlice())
		case from.Is4():
			p.kind = "0800"
			ip := make([]byte, 20+p.options)
			ip[0], ip[9] = byte(0x40+len(ip)/4), p.transport
			ip[6], ip[7] = byte(p.fragment>>8), byte(p.fragment)
			copy(ip[12:], from.AsSlice())
			copy(ip[16:], to.AsSlice())
			body = append(ip, ports...)
		default:
			p.kind = "86dd"
			ip := make([]byte, 40)
			ip[0], ip[6] = 0x60, p.transport
			copy(ip[8:], from.AsSlice())
			copy(ip[24:], to.AsSlice())
			body = append(ip, ports...)
		}
	}
	b = slices.Concat(b, h(p.kind, "88cc"), body)
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

var packets = map[string]packet{
	"http":     {from: "10.0.0.1", to: "10.0.0.2", transport: 6, ports: [2]uint16{40000, 80}},
	"options":  {from: "10.0.0.2", to: "10.0.1.9", transport: 6, ports: [2]uint16{80, 40001}, options: 12},
	"fragment": {from: "10.0.0.1", to: "10.0.0.2", transport: 17, ports: [2]uint16{53, 53}, fragment: 0x00b9},
	"dns":      {from: "10.0.0.1", to: "192.0.2.53", transport: 17, ports: [2]uint16{5353, 53}},
	"ping":     {from: "10.0.0.1", to: "10.0.0.2", transport: 1, ports: [2]uint16{0x0800, 0}},
	"ospf":     {dst: "01005e000005", from: "10.0.0.1", to: "224.0.0.5", transport: 89},
	"bgp6":     {from: "2001:db8::1", to: "2001:db8:1::2", transport: 6, ports: [2]uint16{179, 40002}},
	"nd":       {dst: "3333ff000002", from: "fe80::1", to: "ff02::1:ff00:2", transport: 58},
	"sctp6":    {from: "2001:db8::1", to: "2001:db8::2", transport: 132, ports: [2]uint16{9899, 5000}},
	"arp":      {dst: "ffffffffffff", kind: "0806", from: "10.0.0.1", to: "10.0.0.2"},
	"lldp":     {dst: "0180c200000e", kind: "88cc", payload: []byte{2, 7, 4}},
	"mpls":     {kind: "8847", payload: []byte{0x00, 0x06, 0x41, 0xff, 0x45}}, // label 100
	"tagged":   {tag: "81000064", from: "10.0.0.1", to: "10.0.0.2", transport: 6, ports: [2]uint16{40000, 80}},
}

// Each filter matches these packets and no others.
func TestFilters(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "arp bgp6 dns fragment http lldp mpls nd options ospf ping sctp6 tagged",
		"ip":                            "dns fragment http options ospf ping tagged",
		"ip6":                           "bgp6 nd sctp6",
		"arp":                           "arp",
		"tcp":                           "bgp6 http options tagged",
		"udp":                           "dns fragment",
		"icmp":                          "ping",
		"icmp6":                         "nd",
		"ospf":                          "ospf",
		"sctp":                          "sctp6",
		"not ip and not ip6":            "arp lldp mpls",
		"!(ip or ip6)":                  "arp lldp mpls",
		"port 80":                       "http options tagged",
		"tcp port 80":                   "http options tagged",
		"tcp port http":                 "http options tagged",
		"src port 80":                   "options",
		"tcp dst port 80":               "http tagged",
		"udp port 53":                   "dns",
		"port 53":                       "dns",
		"port 53 or 179":                "bgp6 dns",
		"ip6 port 179":                  "bgp6",
		"ip port 179":                   "",
		"portrange 100-200":             "bgp6",
		"tcp portrange 40000-40001":     "http options tagged",
		"src or dst port 179":           "bgp6",
		"src and dst port 53":           "",
		"host 10.0.0.1":                 "arp dns fragment http ospf ping tagged",
		"10.0.0.1":                      "arp dns fragment http ospf ping tagged",
		"ip host 10.0.0.1":              "dns fragment http ospf ping tagged",
		"arp host 10.0.0.2":             "arp",
		"src host 10.0.0.2":             "options",
		"src 10.0.0.2":                  "options",
		"host 10.0.0.1 or 10.0.1.9":     "arp dns fragment http options ospf ping tagged",
		"src and dst net 10.0.0.0/16":   "arp fragment http options ping tagged",
		"dst net 192.0.2.0/24":          "dns",
		"net 0.0.0.0/0":                 "arp dns fragment http options ospf ping tagged",
		"net 2001:db8::/32":             "bgp6 sctp6",
		"dst net 2001:db8:1::/48":       "bgp6",
		"host fe80::1":                  "nd",
		"ether host 02:00:00:00:00:a1":  "arp bgp6 dns fragment http lldp mpls nd options ospf ping sctp6 tagged",
		"ether dst 01:80:c2:00:00:0e":   "lldp",
		"ether proto 0x88cc":            "lldp",
		`ether proto \arp`:              "arp",
		"ip proto 89":                   "ospf",
		"ip proto ospf":                 "ospf",
		`ip6 proto \tcp`:                "bgp6",
		"proto tcp":                     "bgp6 http options tagged",
		"broadcast":                     "arp",
		"ether multicast":               "arp lldp nd ospf",
		"ip multicast":                  "ospf",
		"ip6 multicast":                 "nd",
		"mpls":                          "mpls",
		"mpls 100":                      "mpls",
		"mpls 101":                      "",
		"less 60":                       "arp fragment http dns lldp mpls options ospf ping tagged",
		"greater 61":                    "bgp6 nd sctp6",
		"tcp and port 80 or icmp":       "http options ping tagged",
		"icmp or tcp and port 179":      "bgp6",
		"icmp or (tcp and port 179)":    "bgp6 ping",
		"not (tcp or udp) and not icmp": "arp lldp mpls nd ospf sctp6",
		"tcp && !port 80":               "bgp6",
	} {
		program, err := compile(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		vm, err := bpf.NewVM(program)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var got []string
		for name, p := range packets {
			n, err := vm.Run(p.bytes(t))
			if err != nil {
				t.Errorf("%q of %s: %v", text, name, err)
			}
			if n > 0 {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		words := strings.Fields(want)
		slices.Sort(words)
		if !slices.Equal(got, words) {
			t.Errorf("%q matches %v, want %v", text, got, words)
		}
		if _, err := Compile(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What is not supported or wrong is rejected: a filter never means something else than it says.
func TestRejected(t *testing.T) {
	for text, want := range map[string]string{
		"tcp[13] & 2 != 0":           "not an IP address",
		"host":                       "lacks an address",
		"port":                       "lacks an address, a port",
		"port 70000":                 `"70000" is not a port`,
		"tcp port ssh2":              `"ssh2" is not a port`,
		"host example.org":           "names are not resolved",
		"net 10.0.0.1/8":             "write 10.0.0.0/8",
		"ip host fe80::1":            "no address of ip",
		"ip6 host 10.0.0.1":          "no address of ip6",
		"ether host 10.0.0.1":        "not a MAC address",
		"tcp host 10.0.0.1":          "tcp has ports",
		"arp port 80":                "arp has no ports",
		"tcp and":                    "missing at the end",
		"(tcp":                       "not closed",
		"tcp)":                       `unexpected ")"`,
		"tcp udp":                    "tcp has ports",
		"and tcp":                    "lacks an address",
		"vlan 5000":                  "not a number up to 4095",
		"ip proto 300":               "not a protocol",
		"gateway 10.0.0.1":           "not an IP address",
		"src proto 6":                "not supported",
		"less than":                  "not a number",
		strings.Repeat("(", 1000):    "too deeply",
		strings.Repeat("not ", 1000): "too deeply",
		strings.Repeat("port 80 or ", 90) + "port 1": "too long",
	} {
		if _, err := Compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// The programs are valid in the kernel's eyes: no jump leads out of them.
func FuzzCompile(f *testing.F) {
	for name := range maps.Keys(packets) {
		f.Add(name + " or not (vlan 5 and src and dst portrange 5-80)")
	}
	f.Fuzz(func(t *testing.T, text string) {
		program, err := compile(text)
		if err != nil {
			return
		}
		if _, err := bpf.Assemble(program); err != nil {
			t.Fatal(err)
		}
		for i, ins := range program {
			if j, ok := ins.(bpf.Jump); ok && i+1+int(j.Skip) >= len(program) {
				t.Fatalf("the jump at %d leads out of the program", i)
			}
		}
	})
}
