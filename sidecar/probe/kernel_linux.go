package probe

import (
	"encoding/binary"
	"errors"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
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

// tryConntrack keeps datagrams of one interface from conntrack, and matches the state of
// a connection.
func tryConntrack() error {
	return errors.Join(
		commit(
			&nftables.Chain{Name: "c", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRef(-310)},
			&expr.Notrack{},
		),
		commit(
			&nftables.Chain{Name: "d", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityRef(-10)},
			&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binary.NativeEndian.AppendUint32(nil, expr.CtStateBitESTABLISHED), Xor: make([]byte, 4)},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
		),
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

// tryShield drops by a BPF program what comes in by an interface, as on each leg.
func tryShield(index int) error {
	fd, err := datapath.Drop.Load()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := addClsact(index); err != nil {
		return err
	}
	return netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          fd, Name: "probe", DirectAction: true,
	})
}

// tryPeerRedirect loads what the local datapath runs.
func tryPeerRedirect() error {
	fd, err := datapath.RedirectToPeer(1).Load()
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func addClsact(index int) error {
	return netlink.QdiscAdd(&netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}})
}

// tryRedirect joins an interface to another one by tc, as the vxlan datapath does.
func tryRedirect(index int) error {
	if err := addClsact(index); err != nil {
		return err
	}
	return netlink.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_ALL},
		Sel:         &netlink.TcU32Sel{Flags: nl.TC_U32_TERMINAL},
		Actions:     []netlink.Action{netlink.NewMirredAction(index)},
	})
}

// tryFlower joins an interface to another one as the launchers of virtual machines do.
func tryFlower(index int) error {
	if err := addClsact(index); err != nil {
		return err
	}
	return netlink.FilterAdd(&netlink.Flower{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 1, Protocol: unix.ETH_P_ALL},
		Actions:     []netlink.Action{netlink.NewMirredAction(index)},
	})
}
