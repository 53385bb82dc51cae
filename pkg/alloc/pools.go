package alloc

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// maxHosts bounds the addresses of one pool that are given out by choice; an
// IPv6 subnet has more than anybody needs.
const maxHosts = 1 << 24

// Addresses is the pool of host addresses in within, which is in subnet: not
// the network address, not an IPv4 broadcast address. gateway is reserved.
func Addresses(name string, subnet, within netip.Prefix, gateway netip.Addr) Pool[netip.Addr] {
	if !within.IsValid() {
		within = subnet
	}
	within = within.Masked()
	bits := within.Addr().BitLen() - within.Bits()
	size := uint64(maxHosts)
	if bits < 24 {
		size = 1 << bits
	}
	base := within.Addr()
	p := Pool[netip.Addr]{
		Name: name,
		Size: size,
		At:   func(i uint64) netip.Addr { return addTo(base, i) },
		Index: func(a netip.Addr) (uint64, bool) {
			if !subnet.Contains(a) {
				return 0, false
			}
			if !within.Contains(a) {
				// A written address may lie outside the dynamic range.
				return size + offset(subnet.Masked().Addr(), a), true
			}
			return offset(base, a), true
		},
		Reserved: []netip.Addr{gateway},
	}
	if subnet.Addr().BitLen()-subnet.Bits() > 1 { // RFC 3021 and RFC 6164: both addresses of a pair are hosts'
		p.Reserved = append(p.Reserved, subnet.Masked().Addr())
		if subnet.Addr().Is4() {
			p.Reserved = append(p.Reserved, Broadcast(subnet))
		}
	}
	return p
}

// Broadcast is the last address of an IPv4 subnet.
func Broadcast(subnet netip.Prefix) netip.Addr {
	return addTo(subnet.Masked().Addr(), uint64(1)<<(32-subnet.Bits())-1)
}

// addTo adds n to an address, in its low 64 bits.
func addTo(a netip.Addr, n uint64) netip.Addr {
	if a.Is4() {
		b := a.As4()
		binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(b[:])+uint32(n))
		return netip.AddrFrom4(b)
	}
	b := a.As16()
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(b[8:])+n)
	return netip.AddrFrom16(b)
}

// offset is b - a in the low 64 bits.
func offset(a, b netip.Addr) uint64 {
	if a.Is4() {
		x, y := a.As4(), b.As4()
		return uint64(binary.BigEndian.Uint32(y[:]) - binary.BigEndian.Uint32(x[:]))
	}
	x, y := a.As16(), b.As16()
	return binary.BigEndian.Uint64(y[8:]) - binary.BigEndian.Uint64(x[8:])
}

// Numbers is the pool first..last.
func Numbers(name string, first, last uint32) Pool[uint32] {
	return Pool[uint32]{
		Name: name,
		Size: uint64(last-first) + 1,
		At:   func(i uint64) uint32 { return first + uint32(i) },
		Index: func(v uint32) (uint64, bool) {
			return uint64(v - first), v >= first && v <= last
		},
	}
}

// Ranges is the pool of the ranges of width numbers that fit into first..last, each by its
// first number.
func Ranges(name string, first, last, width uint32) Pool[uint32] {
	size := (last - first + 1) / width
	return Pool[uint32]{
		Name: name,
		Size: uint64(size),
		At:   func(i uint64) uint32 { return first + uint32(i)*width },
		Index: func(v uint32) (uint64, bool) {
			i := (v - first) / width
			return uint64(i), v >= first && i < size && (v-first)%width == 0
		},
	}
}

// Prefixes is the pool of the prefixes of one length in base, which is not longer. Of an IPv6
// base with fewer than 64 bits, it has those with the first 64 bits of base.
func Prefixes(name string, base netip.Prefix, length int) Pool[netip.Prefix] {
	base = base.Masked()
	shift := base.Addr().BitLen() - length
	size := uint64(maxHosts)
	if bits := length - base.Bits(); bits < 24 {
		size = 1 << bits
	}
	return Pool[netip.Prefix]{
		Name: name,
		Size: size,
		At:   func(i uint64) netip.Prefix { return netip.PrefixFrom(addTo(base.Addr(), i<<shift), length) },
		Index: func(v netip.Prefix) (uint64, bool) {
			if v.Bits() != length || v != v.Masked() || !base.Contains(v.Addr()) {
				return 0, false
			}
			i := offset(base.Addr(), v.Addr()) >> shift
			return i, i < size
		},
	}
}

// Join is the pool of the values of several pools, in their order.
func Join[V comparable](name string, pools ...Pool[V]) Pool[V] {
	out := Pool[V]{Name: name}
	bounds := make([]string, len(pools))
	for i, p := range pools {
		out.Size += p.Size
		out.Reserved = append(out.Reserved, p.Reserved...)
		bounds[i] = p.bounds()
	}
	out.parts = strings.Join(bounds, ", ")
	out.At = func(i uint64) V {
		last := len(pools) - 1
		for _, p := range pools[:last] {
			if i < p.Size {
				return p.At(i)
			}
			i -= p.Size
		}
		return pools[last].At(i)
	}
	out.Index = func(v V) (uint64, bool) {
		before := uint64(0)
		for _, p := range pools {
			if i, ok := p.Index(v); ok && i < p.Size {
				return before + i, true
			}
			before += p.Size
		}
		return 0, false
	}
	return out
}

// MACs is the pool aa:c1:ab:00:00:00 to aa:c1:ab:ff:ff:ff, containerlab's prefix
// for link ends. Addresses that users wrote with another prefix are in it too.
func MACs() Pool[string] {
	const size = 1 << 24
	return Pool[string]{
		Name: "MAC addresses",
		Size: size,
		At: func(i uint64) string {
			return fmt.Sprintf("aa:c1:ab:%02x:%02x:%02x", byte(i>>16), byte(i>>8), byte(i))
		},
		Index: func(mac string) (uint64, bool) {
			var b [6]byte
			if n, err := fmt.Sscanf(mac, "%02x:%02x:%02x:%02x:%02x:%02x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]); n != 6 || err != nil {
				return 0, false
			}
			low := uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
			if b[0] == 0xaa && b[1] == 0xc1 && b[2] == 0xab {
				return low, true
			}
			return size + uint64(b[0])<<40 + uint64(b[1])<<32 + uint64(b[2])<<24 + low, true
		},
	}
}

// NumberOf is the host number of a in its subnet, from 0 for the network address.
func NumberOf(subnet netip.Prefix, a netip.Addr) uint64 {
	return offset(subnet.Masked().Addr(), a)
}

// HostNumber is host number n of a subnet.
func HostNumber(subnet netip.Prefix, n uint64) netip.Addr {
	return addTo(subnet.Masked().Addr(), n)
}
