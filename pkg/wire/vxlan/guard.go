//go:build linux

package vxlan

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The kernel's VXLAN accepts frames from any sender that uses the right VNI. The guard
// admits datagrams to the VXLAN's port only from an address that a session has proven, with
// the VNI of an existing device.

// tableName is the nftables table of family inet that keeps strangers from the
// vxlan datapath.
const tableName = "c9s-wire"

// Source is a permitted sender and its VNI.
type Source struct {
	From netip.Addr
	VNI  uint32
}

// Guard is an nftables table of family inet that admits only the sources to a VXLAN's UDP
// port. Once written it stays, even after the process ends.
type Guard struct {
	Table string
	Port  int
	now   map[Source]bool // as last written, nil before that
}

// Close writes a table that admits nobody, unless an earlier process left one.
func (g *Guard) Close() error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return fmt.Errorf("list nftables tables: %w", err)
	}
	if slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == g.Table }) {
		return nil
	}
	return g.Allow(map[Source]bool{})
}

// Allow writes the table if the sources have changed. It replaces the table in one
// transaction.
func (g *Guard) Allow(want map[Source]bool) error {
	if g.now != nil && maps.Equal(g.now, want) {
		return nil
	}
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: g.Table}
	c.AddTable(t)
	c.DelTable(t)
	c.AddTable(t)
	// Before connection tracking and the Pod's other rules.
	chain := c.AddChain(&nftables.Chain{Name: "vxlan", Table: t, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRef(-320)})
	for _, f := range []vxFamily{
		{"ip", unix.NFPROTO_IPV4, nftables.TypeIPAddr, 12, 4},
		{"ip6", unix.NFPROTO_IPV6, nftables.TypeIP6Addr, 8, 16},
	} {
		if err := f.rule(c, t, chain, want, g.Port); err != nil {
			return err
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("writing nftables table %s: %w", g.Table, err)
	}
	g.now = maps.Clone(want)
	return nil
}

// vxFamily is where an IP header has the source address.
type vxFamily struct {
	name        string
	proto       byte
	kind        nftables.SetDatatype
	offset, len uint32
}

// rule drops datagrams to the port from all but the sources.
func (f vxFamily) rule(c *nftables.Conn, t *nftables.Table, chain *nftables.Chain, want map[Source]bool, port int) error {
	set := &nftables.Set{Table: t, Name: f.name, KeyType: nftables.MustConcatSetType(f.kind, nftables.TypeInteger), Concatenation: true,
		ID: uint32(f.proto)} // within the transaction; the library counts without a lock
	var elements []nftables.SetElement
	for s := range want {
		if s.From.Is4() == (f.proto == unix.NFPROTO_IPV4) {
			elements = append(elements, nftables.SetElement{Key: binary.BigEndian.AppendUint32(s.From.AsSlice(), s.VNI<<8)})
		}
	}
	if err := c.AddSet(set, elements); err != nil {
		return fmt.Errorf("nftables set: %w", err)
	}
	// Registers of 4 bytes each: the number follows the address.
	const reg1, reg32 = unix.NFT_REG_1, unix.NFT_REG32_00
	cmp := func(data []byte) *expr.Cmp { return &expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: data} }
	vni := reg32 + f.len/4
	c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: reg1}, cmp([]byte{f.proto}),
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg1}, cmp([]byte{unix.IPPROTO_UDP}),
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}, cmp(binary.BigEndian.AppendUint16(nil, uint16(port))),
		&expr.Payload{DestRegister: reg32, Base: expr.PayloadBaseNetworkHeader, Offset: f.offset, Len: f.len},
		// 8 bytes of UDP, 4 of VXLAN's flags; then the number in three (RFC 7348, 5).
		&expr.Payload{DestRegister: vni, Base: expr.PayloadBaseTransportHeader, Offset: 12, Len: 4},
		&expr.Bitwise{SourceRegister: vni, DestRegister: vni, Len: 4, Mask: []byte{255, 255, 255, 0}, Xor: make([]byte, 4)},
		&expr.Lookup{SourceRegister: reg1, SetName: set.Name, SetID: set.ID, Invert: true},
		&expr.Counter{},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}})
	return nil
}
