//go:build linux

package udp

import (
	"fmt"
	"net/netip"
	"unsafe"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"golang.org/x/sys/unix"
)

const (
	// underlayBuffer is what may wait for the reader; kernel memory, used only
	// while it is late.
	underlayBuffer = 16 << 20
	sendBuffer     = 4 << 20
)

// Socket is the Pod's one UDP socket.
type Socket struct {
	FD int
	// gso and gro tell whether the kernel segments and merges for us.
	gso, gro bool
}

// OpenSocket opens it on all addresses, for both families where there are two.
func OpenSocket(port int, offload bool) (*Socket, error) {
	s := &Socket{}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the wire's socket: %w", err)
	}
	s.FD = fd
	if err := s.setup(port, offload); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return s, nil
}

func (s *Socket) setup(port int, offload bool) error {
	must := func(what string, err error) error {
		if err != nil {
			return fmt.Errorf("wire's socket: %s: %w", what, err)
		}
		return nil
	}
	set := func(level, opt, v int) error { return unix.SetsockoptInt(s.FD, level, opt, v) }
	if err := must("IPV6_V6ONLY", set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)); err != nil {
		return err
	}
	for _, b := range [][3]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, underlayBuffer}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, sendBuffer}} {
		if set(unix.SOL_SOCKET, b[0], b[2]) != nil {
			set(unix.SOL_SOCKET, b[1], b[2])
		}
	}
	// Probes find the path MTU. The kernel's own value is ignored, and no datagram is
	// fragmented.
	set(unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	set(unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	set(unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if offload {
		s.gro = set(unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		// Setting and unsetting a size shows whether the option exists (Linux 4.18).
		s.gso = set(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1200) == nil
		set(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0)
	}
	addr := &unix.SockaddrInet6{Port: port}
	if err := must(fmt.Sprintf("binding UDP port %d", port), unix.Bind(s.FD, addr)); err != nil {
		return err
	}
	return nil
}

// admit makes the kernel drop datagrams that belong to no session and are no hello of the
// lab, before they are queued or wake a thread. It checks only the first 16 bits of the
// session's number. Everything else is checked later.
func (s *Socket) admit(tag uint64, prefix uint16) error {
	const udp = proto.UDPHeaderLen // a socket's filter sees the UDP header
	load := func(size uint16, at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | size | unix.BPF_ABS, K: udp + at}
	}
	unless := func(v uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: v}
	}
	atLeast := func(v uint32, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: no, K: v}
	}
	const drop, pass = 0, 1 << 20
	//	0 type        1 >= hello? else 7   2 >= heartbeat? then 7
	//	3-6 the tag   7 >= data? else 11   8 <= probe's answer? else 11
	//	9 the session's prefix  10 equal?  11 drop  12 pass
	prog := []unix.SockFilter{
		load(unix.BPF_B, 0),
		atLeast(uint32(proto.TypeByte(proto.MsgHello)), 5),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jt: 4, K: uint32(proto.TypeByte(proto.MsgHeartbeat))},
		load(unix.BPF_W, 8),
		unless(uint32(tag>>32), 6),
		load(unix.BPF_W, 12),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 5, Jf: 4, K: uint32(tag)},
		atLeast(uint32(proto.TypeByte(proto.MsgData)), 3),
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, Jt: 2, K: uint32(proto.TypeByte(proto.MsgProbeAck))},
		load(unix.BPF_H, 4),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: uint32(prefix)},
		{Code: unix.BPF_RET | unix.BPF_K, K: drop},
		{Code: unix.BPF_RET | unix.BPF_K, K: pass},
	}
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	if err := unix.SetsockoptSockFprog(s.FD, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &f); err != nil {
		return fmt.Errorf("filter of the wire's socket: %w", err)
	}
	return nil
}

// Send sends one control datagram.
func (s *Socket) Send(to netip.AddrPort, b []byte) error {
	raw := datapath.ToRaw(to)
	_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.FD), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL,
		uintptr(unsafe.Pointer(&raw)), unix.SizeofSockaddrInet6)
	if e != 0 {
		return e
	}
	return nil
}

// Close closes the socket.
func (s *Socket) Close() { unix.Close(s.FD) }
