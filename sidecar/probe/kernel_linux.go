package probe

import (
	"encoding/binary"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// tryNAT makes what sidecar/nft makes of NAT: a chain of family inet (Linux 5.2)
// with a rule that translates.
func tryNAT() error {
	return commit(
		&nftables.Chain{Name: "c", Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityRef(90)},
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.NFPROTO_IPV4}},
		&expr.Immediate{Register: 1, Data: []byte{192, 0, 2, 1}},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1},
	)
}

// tryConntrack sets a connection's zone, ahead of conntrack.
func tryConntrack() error {
	return commit(
		&nftables.Chain{Name: "c", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRef(-310)},
		&expr.Immediate{Register: 1, Data: binary.NativeEndian.AppendUint16(nil, 14800)},
		&expr.Ct{Key: expr.CtKeyZONE, SourceRegister: true, Register: 1},
	)
}

func commit(chain *nftables.Chain, rule ...expr.Any) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	table := conn.AddTable(&nftables.Table{Name: "probe", Family: nftables.TableFamilyINet})
	chain.Table = table
	conn.AddChain(chain)
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule})
	return conn.Flush()
}

// tryRedirect joins an interface to another one by tc, as the vxlan datapath does.
func tryRedirect(index int) error {
	qdisc := &netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}
	if err := netlink.QdiscAdd(qdisc); err != nil {
		return err
	}
	return netlink.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_ALL},
		Sel:         &netlink.TcU32Sel{Flags: nl.TC_U32_TERMINAL},
		Actions:     []netlink.Action{netlink.NewMirredAction(index)},
	})
}
