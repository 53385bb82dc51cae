package snapshot

import (
	"fmt"
	"math/big"
	"net/netip"
)

// private are the blocks in which subnets of copies stay (RFC 1918, RFC 6598).
var private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("100.64.0.0/10"),
}

// Subnet returns the n-th subnet of the same size after one. It stays in the private block of
// the subnet, or in the 65,536 subnets around one that is in none, and starts again at their
// beginning.
func Subnet(base netip.Prefix, n int) (netip.Prefix, error) {
	base = base.Masked()
	block := netip.PrefixFrom(base.Addr(), max(base.Bits()-16, 0)).Masked()
	for _, p := range private {
		if p.Contains(base.Addr()) && p.Bits() <= base.Bits() {
			block = p
		}
	}
	count := new(big.Int).Lsh(big.NewInt(1), uint(base.Bits()-block.Bits()))
	if big.NewInt(int64(n)).Cmp(count) >= 0 {
		return netip.Prefix{}, fmt.Errorf("%s has no room for %d more networks as large as %s", block, n, base)
	}
	size := uint(base.Addr().BitLen() - base.Bits())
	first := number(block.Addr())
	index := new(big.Int).Rsh(new(big.Int).Sub(number(base.Addr()), first), size)
	index.Mod(index.Add(index, big.NewInt(int64(n))), count)
	sum := first.Add(first, index.Lsh(index, size))
	addr, _ := netip.AddrFromSlice(sum.FillBytes(make([]byte, base.Addr().BitLen()/8)))
	return netip.PrefixFrom(addr, base.Bits()), nil
}

func number(a netip.Addr) *big.Int { return new(big.Int).SetBytes(a.AsSlice()) }
