package xtables

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/sidecar/passage"
)

// family is what differs between the tables of IPv4 and IPv6
// (linux/netfilter_ipv4/ip_tables.h, linux/netfilter_ipv6/ip6_tables.h).
type family struct {
	domain, level int
	// names is the file that lists the tables that there are.
	names string
	// Offsets in struct ipt_entry or ip6t_entry, bytes.
	interfaces, protocol, flags int
	// The size of the target is two bytes after its offset, and that of the whole
	// entry's head is size.
	targetOffset, counters, size int
	// protocolFlag says that the protocol counts.
	protocolFlag byte
	icmp         byte
}

var (
	ipv4 = &family{
		domain: unix.AF_INET, level: unix.SOL_IP, names: "/proc/self/net/ip_tables_names",
		interfaces: 16, protocol: 80, flags: 82, targetOffset: 88, counters: 96, size: 112, icmp: unix.IPPROTO_ICMP,
	}
	ipv6 = &family{
		domain: unix.AF_INET6, level: unix.SOL_IPV6, names: "/proc/self/net/ip6_tables_names",
		interfaces: 64, protocol: 128, flags: 131, targetOffset: 140, counters: 152, size: 168, protocolFlag: 1, icmp: unix.IPPROTO_ICMPV6,
	}
)

// Verdicts of a standard target; zero and more are the offset of the rule to jump
// to (linux/netfilter/x_tables.h).
const (
	verdictDrop   = -1 // -NF_DROP - 1
	verdictAccept = -2 // -NF_ACCEPT - 1
)

// Sizes, bytes: struct xt_entry_match and xt_entry_target begin alike.
const (
	partHeader     = 32
	standardTarget = 40
	countersSize   = 16
)

// entry makes the bytes of an accepting rule, nil for one that the family cannot
// have.
func (f *family) entry(r passage.Rule) []byte {
	if (r.Protocol == unix.IPPROTO_ICMP || r.Protocol == unix.IPPROTO_ICMPV6) && r.Protocol != f.icmp {
		return nil
	}
	e := make([]byte, f.size)
	for i, name := range []string{r.In, r.Out} {
		if name == "" {
			continue
		}
		at := f.interfaces + i*unix.IFNAMSIZ
		copy(e[at:at+unix.IFNAMSIZ-1], name)
		for j := range len(name) + 1 { // the final zero counts: the whole name
			e[at+2*unix.IFNAMSIZ+j] = 0xff
		}
	}
	if r.Protocol != 0 {
		binary.NativeEndian.PutUint16(e[f.protocol:], uint16(r.Protocol))
		e[f.flags] |= f.protocolFlag
	}
	if r.SourcePort != 0 || r.DestinationPort != 0 {
		e = append(e, ports(r)...)
	}
	if r.Answers {
		e = append(e, established()...)
	}
	if r.Mark != 0 {
		data := binary.NativeEndian.AppendUint32(nil, r.Mark)
		data = binary.NativeEndian.AppendUint32(data, 0xffffffff)
		e = append(e, part("mark", 1, append(data, 0, 0, 0, 0))...) // struct xt_mark_mtinfo1
	}
	binary.NativeEndian.PutUint16(e[f.targetOffset:], uint16(len(e)))
	verdict := int32(verdictAccept)
	e = append(e, part("", 0, binary.NativeEndian.AppendUint32(nil, uint32(verdict)))...)
	binary.NativeEndian.PutUint16(e[f.targetOffset+2:], uint16(len(e)))
	return e
}

// ports is struct xt_udp or xt_tcp: ranges of ports.
func ports(r passage.Rule) []byte {
	var data []byte
	for _, n := range []uint16{r.SourcePort, r.DestinationPort} {
		last := n
		if n == 0 {
			last = 0xffff
		}
		data = binary.NativeEndian.AppendUint16(data, n)
		data = binary.NativeEndian.AppendUint16(data, last)
	}
	if r.Protocol == unix.IPPROTO_TCP {
		return part("tcp", 0, append(data, 0, 0, 0, 0))
	}
	return part("udp", 0, append(data, 0, 0))
}

// established is struct xt_conntrack_mtinfo3 for established and related
// connections.
func established() []byte {
	const (
		size        = 164
		matchFlags  = 146
		stateMask   = 150
		matchState  = 1
		established = 1 << 1
		related     = 1 << 2
	)
	data := make([]byte, size)
	binary.NativeEndian.PutUint16(data[matchFlags:], matchState)
	binary.NativeEndian.PutUint16(data[stateMask:], established|related)
	return part("conntrack", 3, data)
}

// part is a match or a target: its size, name and revision, and data, padded to
// eight bytes.
func part(name string, revision byte, data []byte) []byte {
	size := (partHeader + len(data) + 7) &^ 7
	p := make([]byte, size)
	binary.NativeEndian.PutUint16(p, uint16(size))
	copy(p[2:], name)
	p[partHeader-1] = revision
	copy(p[partHeader:], data)
	return p
}
