package nft

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
)

// addrSet is a set of the table: addresses of one family, at least one.
type addrSet struct {
	name  string
	addrs []netip.Addr
}

// The names of sets, to which the family is added.
const (
	denyTo   = "deny-to"
	denyFrom = "deny-from"
)

// sets returns the sets that the rules use.
func (c Config) sets() []addrSet {
	return slices.Concat(byFamily(denyTo, c.DenyTo), byFamily(denyFrom, c.DenyFrom))
}

// byFamily returns the sets of a list of addresses, one for each family in it.
func byFamily(name string, addrs []netip.Addr) []addrSet {
	four, six := addrSet{name: name + "4"}, addrSet{name: name + "6"}
	for _, a := range addrs {
		if a.Is4() {
			four.addrs = append(four.addrs, a)
		} else {
			six.addrs = append(six.addrs, a)
		}
	}
	return slices.DeleteFunc([]addrSet{four, six}, func(s addrSet) bool { return len(s.addrs) == 0 })
}

// maxElements bounds the elements of one netlink message, whose attributes have at most 64 kB.
const maxElements = 1000

// add adds the set to the transaction.
func (s addrSet) add(conn *nftables.Conn, t *nftables.Table) error {
	set := &nftables.Set{Table: t, Name: s.name, KeyType: nftables.TypeIPAddr}
	if s.addrs[0].Is6() {
		set.KeyType = nftables.TypeIP6Addr
	}
	if err := conn.AddSet(set, nil); err != nil {
		return fmt.Errorf("nftables set %s: %w", s.name, err)
	}
	for part := range slices.Chunk(s.addrs, maxElements) {
		elements := make([]nftables.SetElement, len(part))
		for i, a := range part {
			elements[i].Key = a.AsSlice()
		}
		if err := conn.SetAddElements(set, elements); err != nil {
			return fmt.Errorf("nftables set %s: %w", s.name, err)
		}
	}
	return nil
}
