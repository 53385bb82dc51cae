//go:build linux

package datapath

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/c9s-lab/c9s/pkg/wire/virtio"
	"golang.org/x/sys/unix"
)

// legBuffer is what may wait for a leg's reader.
const legBuffer = 8 << 20

// Socket is a packet socket on a leg. Reads return what the device sends; writes go to the
// device.
type Socket struct {
	fd int
	// Virtio: frames have a virtio-net header, which allows super-frames and
	// unfinished checksums.
	Virtio bool
}

// Open opens a Socket. The thread must be in the leg's network namespace.
func Open(index int, offload bool) (*Socket, error) {
	// Protocol 0 receives nothing until bind, when all options are set.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a packet socket: %w", err)
	}
	s := &Socket{fd: fd}
	set := func(opt, v int) error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, opt, v) }
	if offload {
		s.Virtio = set(unix.PACKET_VNET_HDR, 1) == nil
	}
	set(unix.PACKET_IGNORE_OUTGOING, 1) // Linux 4.20; the filter serves older ones
	set(unix.PACKET_QDISC_BYPASS, 1)
	if err := set(unix.PACKET_AUXDATA, 1); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("PACKET_AUXDATA: %w", err)
	}
	for _, b := range [][2]int{{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF}} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, b[0], legBuffer) != nil {
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, b[1], legBuffer)
		}
	}
	if err := s.Accept(true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: Htons(unix.ETH_P_ALL), Ifindex: index}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("binding a packet socket: %w", err)
	}
	return s, nil
}

// Accept sets the filter: all that the device sends, or nothing while another
// datapath carries it.
func (s *Socket) Accept(on bool) error {
	const skfAdOff, skfAdPktType, packetOutgoing = -0x1000, 4, 4
	prog := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	if on {
		off := int32(skfAdOff + skfAdPktType)
		prog = []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: uint32(off)},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: packetOutgoing},
			{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 20},
			{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		}
	}
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	if err := unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &f); err != nil {
		return fmt.Errorf("filter of a packet socket: %w", err)
	}
	return nil
}

// Overruns is how many frames the kernel had no room for since it was last asked.
func (s *Socket) Overruns() uint32 {
	st, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return st.Drops
}

// Htons returns v in network byte order.
func Htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return *(*uint16)(unsafe.Pointer(&b))
}

// FrameOf returns the frame of n bytes in slot i. It puts back the outer VLAN tag, which
// Linux passes in the auxiliary data, and adjusts the virtio-net header.
func FrameOf(r *RxBatch, i, n int, vnet bool) []byte {
	slot := r.Slot(i)
	frame := slot[slotRoom : slotRoom+n]
	aux := r.Cmsg(i, unix.SOL_PACKET, unix.PACKET_AUXDATA)
	if len(aux) < int(unsafe.Sizeof(unix.TpacketAuxdata{})) {
		return frame
	}
	a := (*unix.TpacketAuxdata)(unsafe.Pointer(&aux[0]))
	if a.Status&unix.TP_STATUS_VLAN_VALID == 0 || n < 14 {
		return frame
	}
	tpid := uint16(unix.ETH_P_8021Q)
	if a.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		tpid = a.Vlan_tpid
	}
	frame = slot[slotRoom-4 : slotRoom+n]
	copy(frame[:12], frame[4:16])
	binary.BigEndian.PutUint16(frame[12:], tpid)
	binary.BigEndian.PutUint16(frame[14:], a.Vlan_tci)
	if vnet {
		var h virtio.Header
		h.Parse(r.vnet[i][:])
		h.Shift(4)
		h.Put(r.vnet[i][:])
	}
	return frame
}

// Close closes the socket.
func (s *Socket) Close() { unix.Close(s.fd) }
