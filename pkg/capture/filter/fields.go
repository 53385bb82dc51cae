package filter

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/net/bpf"
)

// EtherTypes and numbers of protocols.
const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806
	etherRARP = 0x8035
	etherIPv6 = 0x86dd

	protoTCP, protoUDP, protoSCTP = 6, 17, 132
)

// Where fields are, behind the addresses of the Ethernet header.
const (
	atType    = 12
	atNetwork = 14
)

// at loads bytes of the frame, counted as if it had no tag.
func at(offset, size int) []bpf.Instruction {
	return []bpf.Instruction{bpf.LoadScratch{Dst: bpf.RegX, N: base}, bpf.LoadIndirect{Off: uint32(offset), Size: size}}
}

func masked(load []bpf.Instruction, mask uint32) []bpf.Instruction {
	return append(load, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask})
}

func equal(load []bpf.Instruction, v uint32) expr { return test{load, bpf.JumpEqual, v} }

func etherType(v uint32) expr { return equal(at(atType, 2), v) }

func isIPv4() expr { return etherType(etherIPv4) }
func isIPv6() expr { return etherType(etherIPv6) }

// protocol4 and protocol6 compare the protocol of an IP packet.
func protocol4(v uint32) expr { return all(isIPv4(), equal(at(atNetwork+9, 1), v)) }
func protocol6(v uint32) expr { return all(isIPv6(), equal(at(atNetwork+6, 1), v)) }

// address4 compares the address at an offset with a network.
func address4(offset int, p netip.Prefix) expr {
	a := p.Masked().Addr().As4()
	return network(offset, a[:], p.Bits())
}

func address6(offset int, p netip.Prefix) expr {
	a := p.Masked().Addr().As16()
	return network(offset, a[:], p.Bits())
}

// network compares the first bits of an address, word by word.
func network(offset int, a []byte, bits int) expr {
	var list []expr
	for i := 0; i < len(a) && bits > 0; i, bits = i+4, bits-32 {
		load := at(offset+i, 4)
		if bits < 32 {
			load = masked(load, ^uint32(0)<<(32-bits))
		}
		list = append(list, equal(load, binary.BigEndian.Uint32(a[i:])))
	}
	if len(list) == 0 {
		return always{}
	}
	return all(list...)
}

func hardware(offset int, a net.HardwareAddr) expr {
	load := []bpf.Instruction{bpf.LoadAbsolute{Off: uint32(offset), Size: 4}}
	rest := []bpf.Instruction{bpf.LoadAbsolute{Off: uint32(offset + 4), Size: 2}}
	return all(equal(load, binary.BigEndian.Uint32(a)), equal(rest, uint32(binary.BigEndian.Uint16(a[4:]))))
}

// firstFragment is a packet with the transport header: not a later fragment.
func firstFragment() expr { return equal(masked(at(atNetwork+6, 2), 0x1fff), 0) }

// port4 loads the port at an offset of the transport header, behind an IPv4 header of any
// length.
func port4(offset int) []bpf.Instruction {
	return append(at(atNetwork, 1),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x0f}, bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 2},
		bpf.ALUOpX{Op: bpf.ALUOpAdd}, bpf.TAX{}, bpf.LoadIndirect{Off: uint32(atNetwork + offset), Size: 2})
}

func port6(offset int) []bpf.Instruction { return at(atNetwork+40+offset, 2) }

// between compares a port with a range.
func between(load []bpf.Instruction, low, high uint32) expr {
	if low == high {
		return equal(load, low)
	}
	return all(test{load, bpf.JumpGreaterOrEqual, low}, test{load, bpf.JumpLessOrEqual, high})
}

// vlan is a tag in the frame or apart from it, with an id if that is not negative.
func vlan(id int) expr {
	apart := equal([]bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtVLANTagPresent}}, 1)
	inside := any(equal([]bpf.Instruction{bpf.LoadAbsolute{Off: 12, Size: 2}}, 0x8100), equal([]bpf.Instruction{bpf.LoadAbsolute{Off: 12, Size: 2}}, 0x88a8))
	if id >= 0 {
		apart = all(apart, equal([]bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtVLANTag}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff}}, uint32(id)))
		inside = all(inside, equal([]bpf.Instruction{bpf.LoadAbsolute{Off: 14, Size: 2}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff}}, uint32(id)))
	}
	return any(apart, inside)
}

func length() []bpf.Instruction {
	return []bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtLen}}
}
