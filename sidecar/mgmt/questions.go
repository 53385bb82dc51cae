package mgmt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// watchQuestions reads what the kernel sends out on the mesh to find neighbours
// (ARP requests and IPv6 neighbour solicitations, taken off a packet socket: the
// notice for programs, CONFIG_ARPD, is left out of many kernels), and its notices
// of frames that have no forwarding entry.
func watchQuestions(index int, ask func(netip.Addr), missed func(net.HardwareAddr)) (stop func(), err error) {
	packets, err := questionSocket(index)
	if err != nil {
		return nil, err
	}
	misses, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_NEIGH)
	if err != nil {
		packets.Close()
		return nil, fmt.Errorf("watch for misses of the mesh: %w", err)
	}
	go func() {
		frame := make([]byte, 128)
		for {
			n, err := packets.Read(frame)
			if err != nil {
				// The interface went down or away; the next one gets its own.
				if errors.Is(err, unix.ENETDOWN) {
					continue
				}
				return
			}
			if a, ok := question(frame[:n]); ok {
				ask(a)
			}
		}
	}()
	go readMisses(misses, index, missed)
	return func() {
		packets.Close()
		misses.Close()
	}, nil
}

func questionSocket(index int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("packet socket on the mesh: %w", err)
	}
	prog, err := questionFilter()
	if err == nil {
		err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})
	}
	if err == nil {
		const allProtocols = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: allProtocols & 0xffff, Ifindex: index})
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("packet socket on the mesh: %w", err)
	}
	return os.NewFile(uintptr(fd), "mesh"), nil
}

// Offsets in Ethernet frames, in bytes (RFC 826; RFC 8200; RFC 4861, 4.3).
const (
	etherType   = 12
	arpOp       = 14 + 6
	arpTarget   = 14 + 24
	ipv6Next    = 14 + 6
	icmpType    = 14 + 40
	nsTarget    = 14 + 40 + 8
	icmpNS      = 135
	arpRequest  = 1
	ethARP      = 0x0806
	ethIPv6     = 0x86dd
	icmpv6Proto = 58
)

// questionFilter lets outgoing ARP and neighbour solicitations through.
func questionFilter() ([]unix.SockFilter, error) {
	raw, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipFalse: 8},
		bpf.LoadAbsolute{Off: etherType, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: ethARP, SkipTrue: 5},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: ethIPv6, SkipFalse: 5},
		bpf.LoadAbsolute{Off: ipv6Next, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: icmpv6Proto, SkipFalse: 3},
		bpf.LoadAbsolute{Off: icmpType, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: icmpNS, SkipFalse: 1},
		bpf.RetConstant{Val: 128},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return nil, err
	}
	prog := make([]unix.SockFilter, len(raw))
	for i, ins := range raw {
		prog[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	return prog, nil
}

// question is the address that a frame asks for. Only questions to everybody
// count: one to a peer's own MAC is the kernel making sure of it.
func question(frame []byte) (netip.Addr, bool) {
	if len(frame) < arpTarget+4 || frame[0]&1 == 0 {
		return netip.Addr{}, false
	}
	switch binary.BigEndian.Uint16(frame[etherType:]) {
	case ethARP:
		if binary.BigEndian.Uint16(frame[arpOp:]) != arpRequest {
			return netip.Addr{}, false
		}
		return netip.AddrFrom4([4]byte(frame[arpTarget:])), true
	case ethIPv6:
		if len(frame) < nsTarget+16 {
			return netip.Addr{}, false
		}
		return netip.AddrFrom16([16]byte(frame[nsTarget:])), true
	}
	return netip.Addr{}, false
}

// readMisses reads "which station is that": RTM_GETNEIGH with a MAC (vxlan's
// l2miss).
func readMisses(s *nl.NetlinkSocket, index int, missed func(net.HardwareAddr)) {
	const ndmsgLen, ndaLLAddr = 12, 2
	for {
		msgs, _, err := s.Receive()
		if err != nil {
			if errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
				continue
			}
			return
		}
		for _, m := range msgs {
			if m.Header.Type != unix.RTM_GETNEIGH || len(m.Data) < ndmsgLen ||
				int(binary.NativeEndian.Uint32(m.Data[4:])) != index {
				continue
			}
			attrs, err := nl.ParseRouteAttr(m.Data[ndmsgLen:])
			if err != nil {
				continue
			}
			for _, a := range attrs {
				if a.Attr.Type == ndaLLAddr && len(a.Value) == 6 {
					missed(net.HardwareAddr(a.Value))
				}
			}
		}
	}
}
