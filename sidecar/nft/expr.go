package nft

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// rule is a rule as a list of expressions. It consists of the parts below, each of which
// loads a value into register 1 and compares it.
type rule []expr.Any

func exprs(parts ...rule) rule {
	var all rule
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

const reg = unix.NFT_REG_1

func cmp(data []byte) *expr.Cmp { return &expr.Cmp{Op: expr.CmpOpEq, Register: reg, Data: data} }

func not(r rule) rule {
	last := *r[len(r)-1].(*expr.Cmp)
	last.Op = expr.CmpOpNeq
	return append(append(rule{}, r[:len(r)-1]...), &last)
}

func ifname(key expr.MetaKey, name string) rule {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, name)
	return rule{&expr.Meta{Key: key, Register: reg}, cmp(data)}
}

func iif(name string) rule { return ifname(expr.MetaKeyIIFNAME, name) }
func oif(name string) rule { return ifname(expr.MetaKeyOIFNAME, name) }

// family matches the family of an address, IPv4 or IPv6.
func family(a netip.Addr) rule {
	proto := byte(unix.NFPROTO_IPV4)
	if a.Is6() {
		proto = unix.NFPROTO_IPV6
	}
	return rule{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: reg}, cmp([]byte{proto})}
}

// Offsets of addresses in the IP headers, in bytes (RFC 791, 3.1; RFC 8200, 3).
func addrOffset(a netip.Addr, destination bool) uint32 {
	switch {
	case a.Is4() && destination:
		return 16
	case a.Is4():
		return 12
	case destination:
		return 24
	}
	return 8
}

func address(p netip.Prefix, destination bool) rule {
	a := p.Masked().Addr()
	load := &expr.Payload{
		DestRegister: reg, Base: expr.PayloadBaseNetworkHeader,
		Offset: addrOffset(a, destination), Len: uint32(a.BitLen() / 8),
	}
	r := append(family(a), load)
	if p.Bits() < a.BitLen() {
		mask := make([]byte, a.BitLen()/8)
		for i := range p.Bits() {
			mask[i/8] |= 0x80 >> (i % 8)
		}
		r = append(r, &expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: load.Len, Mask: mask, Xor: make([]byte, len(mask))})
	}
	return append(r, cmp(a.AsSlice()))
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func daddr(p netip.Prefix) rule { return address(p, true) }
func saddr(p netip.Prefix) rule { return address(p, false) }

// notSaddr matches all other sources of the address's own family.
func notSaddr(a netip.Addr) rule { return not(saddr(host(a))) }

// among matches packets whose source or destination is in a set of addresses of one family.
func among(s addrSet, destination bool) rule {
	a := s.addrs[0]
	return append(family(a),
		&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: addrOffset(a, destination), Len: uint32(a.BitLen() / 8)},
		&expr.Lookup{SourceRegister: reg, SetName: s.name})
}

func l4proto(p byte) rule {
	return rule{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg}, cmp([]byte{p})}
}

// port matches the source or destination port, which TCP, UDP and SCTP have at the same
// place.
func port(n uint16, destination bool) rule {
	offset := uint32(0)
	if destination {
		offset = 2
	}
	return rule{
		&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 2},
		cmp(binary.BigEndian.AppendUint16(nil, n)),
	}
}

func dport(proto byte, n uint16) rule { return exprs(l4proto(proto), port(n, true)) }

func notrack() rule { return rule{&expr.Notrack{}} }

// ctBit matches packets whose connection has one of the bits.
func ctBit(key expr.CtKey, bits uint32) rule {
	zero := make([]byte, 4)
	return rule{
		&expr.Ct{Key: key, Register: reg},
		&expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: 4, Mask: binary.NativeEndian.AppendUint32(nil, bits), Xor: zero},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: reg, Data: zero},
	}
}

// opening matches packets that belong to no connection yet.
func opening() rule {
	return ctBit(expr.CtKeySTATE, expr.CtStateBitNEW|expr.CtStateBitINVALID|expr.CtStateBitUNTRACKED)
}

func nat(kind expr.NATType, to netip.Addr) rule {
	proto := uint32(unix.NFPROTO_IPV4)
	if to.Is6() {
		proto = unix.NFPROTO_IPV6
	}
	return rule{
		&expr.Immediate{Register: reg, Data: to.AsSlice()},
		&expr.NAT{Type: kind, Family: proto, RegAddrMin: reg},
	}
}

func dnat(to netip.Addr) rule { return nat(expr.NATTypeDestNAT, to) }
func snat(to netip.Addr) rule { return nat(expr.NATTypeSourceNAT, to) }

func drop() rule { return rule{&expr.Verdict{Kind: expr.VerdictDrop}} }
func jump(to string) rule {
	return rule{&expr.Verdict{Kind: expr.VerdictJump, Chain: to}}
}
func ret() rule { return rule{&expr.Verdict{Kind: expr.VerdictReturn}} }

// prohibited answers with "administratively prohibited" (ICMPX code 3, for
// both families).
func prohibited() rule {
	return rule{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}}
}

// refused answers like a closed port.
func refused() rule {
	return rule{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}}
}

// icmpv6 matches a type of ICMPv6 (RFC 4443, 2.1).
func icmpv6(kind byte) rule {
	return exprs(l4proto(unix.IPPROTO_ICMPV6), rule{
		&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1}, cmp([]byte{kind}),
	})
}

// clampMSS lowers the MSS option of SYN segments; the kernel never raises one
// (net/netfilter/nft_exthdr.c).
func clampMSS(mss uint16) rule {
	const (
		flagsOffset = 13
		synRst      = 0x06
		syn         = 0x02
		optionMSS   = 2
	)
	return exprs(l4proto(unix.IPPROTO_TCP), rule{
		&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: flagsOffset, Len: 1},
		&expr.Bitwise{SourceRegister: reg, DestRegister: reg, Len: 1, Mask: []byte{synRst}, Xor: []byte{0}},
		cmp([]byte{syn}),
		&expr.Immediate{Register: reg, Data: binary.BigEndian.AppendUint16(nil, mss)},
		&expr.Exthdr{SourceRegister: reg, Type: optionMSS, Offset: 2, Len: 2, Op: expr.ExthdrOpTcpopt},
	})
}
