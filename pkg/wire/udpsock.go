//go:build linux

package wire

import (
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// underlayBuffer is what may wait for the reader; kernel memory, used only
	// while it is late.
	underlayBuffer = 16 << 20
	sendBuffer     = 4 << 20
)

// underlaySocket is the Pod's one UDP socket.
type underlaySocket struct {
	fd int
	// gso and gro tell whether the kernel segments and merges for us.
	gso, gro bool
}

// openUnderlay opens it on all addresses, for both families where there are two.
func openUnderlay(port int, mark uint32, offload bool) (*underlaySocket, error) {
	s := &underlaySocket{}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the wire's socket: %w", err)
	}
	s.fd = fd
	if err := s.setup(port, mark, offload); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return s, nil
}

func (s *underlaySocket) setup(port int, mark uint32, offload bool) error {
	must := func(what string, err error) error {
		if err != nil {
			return fmt.Errorf("wire's socket: %s: %w", what, err)
		}
		return nil
	}
	set := func(level, opt, v int) error { return unix.SetsockoptInt(s.fd, level, opt, v) }
	if err := must("IPV6_V6ONLY", set(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)); err != nil {
		return err
	}
	if mark != 0 {
		if err := must("SO_MARK", set(unix.SOL_SOCKET, unix.SO_MARK, int(mark))); err != nil {
			return err
		}
	}
	for _, b := range [][3]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, underlayBuffer}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, sendBuffer}} {
		if set(unix.SOL_SOCKET, b[0], b[2]) != nil {
			set(unix.SOL_SOCKET, b[1], b[2])
		}
	}
	// The path MTU is found by probes; the kernel's guess of it is not asked, and
	// no datagram is fragmented.
	set(unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	set(unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
	set(unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	if offload {
		s.gro = set(unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		// Setting and unsetting a size tells whether the option exists (Linux 4.18).
		s.gso = set(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1200) == nil
		set(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0)
	}
	addr := &unix.SockaddrInet6{Port: port}
	if err := must(fmt.Sprintf("binding UDP port %d", port), unix.Bind(s.fd, addr)); err != nil {
		return err
	}
	return nil
}

// send sends one control datagram.
func (s *underlaySocket) send(to netip.AddrPort, b []byte) error {
	raw := toRaw(to)
	_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL,
		uintptr(unsafe.Pointer(&raw)), unix.SizeofSockaddrInet6)
	if e != 0 {
		return e
	}
	return nil
}

func (s *underlaySocket) close() { unix.Close(s.fd) }
