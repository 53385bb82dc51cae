package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

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
	fd, err := loadProgram([]uint64{0xb7 | 2<<32, 0x95}) // r0 = TC_ACT_SHOT; exit (linux/bpf.h, pkt_cls.h)
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

// loadProgram loads a tc program.
func loadProgram(program []uint64) (int, error) {
	license := []byte("GPL\x00")
	var pins runtime.Pinner // the kernel gets addresses as numbers
	defer pins.Unpin()
	pins.Pin(&program[0])
	pins.Pin(&license[0])
	attr := struct {
		kind, count    uint32
		insns, license uint64
		logLevel, size uint32
		log            uint64
		version, flags uint32
	}{kind: unix.BPF_PROG_TYPE_SCHED_CLS, count: uint32(len(program)), insns: uint64(uintptr(unsafe.Pointer(&program[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0])))}
	const tries = 50 // the verifier gives up when a signal arrives, as those of Go's scheduler
	for try := 0; ; try++ {
		fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		switch {
		case errno == 0:
			return int(fd), nil
		case (errno != unix.EAGAIN && errno != unix.EINTR) || try == tries:
			return 0, fmt.Errorf("loading a BPF program: %w", errno)
		}
	}
}

// tryPeerRedirect loads what the local datapath runs: r1 = 1; r2 = 0; call
// bpf_redirect_peer; exit.
func tryPeerRedirect() error {
	fd, err := loadProgram([]uint64{0xb7 | 1<<8 | 1<<32, 0xb7 | 2<<8, 0x85 | 155<<32, 0x95})
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
