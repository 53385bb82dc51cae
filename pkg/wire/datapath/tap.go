//go:build linux

package datapath

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/wire/virtio"
)

// Tap is a packet socket that copies what an interface receives, as its network namespace sees
// it, and sends nothing.
type Tap struct {
	sock  *Socket
	stats struct{ received, dropped uint64 }
}

// Tapped is what a tap has of a frame. Its bytes are valid until the next Read.
type Tapped struct {
	// Time is when the kernel received it, in nanoseconds since 1970.
	Time int64
	// Vnet is the virtio-net header, nil for none.
	Vnet, Frame []byte
	// Length is that of the frame, of which Frame may have the beginning only.
	Length int
}

// OpenTap opens a tap with a filter, which may be empty, and room for some bytes of frames that
// wait for their reader. The thread must be in the interface's network namespace.
func OpenTap(index int, filter []bpf.RawInstruction, room int) (*Tap, error) {
	sock, err := Open(index, true)
	if err != nil {
		return nil, err
	}
	if err := unix.SetsockoptInt(sock.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		sock.Close()
		return nil, fmt.Errorf("SO_TIMESTAMPNS: %w", err)
	}
	_ = unix.SetsockoptInt(sock.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room) // otherwise it has a leg's
	if len(filter) > 0 {
		program := make([]unix.SockFilter, len(filter))
		for i, f := range filter {
			program[i] = unix.SockFilter{Code: f.Op, Jt: f.Jt, Jf: f.Jf, K: f.K}
		}
		err := unix.SetsockoptSockFprog(sock.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
		if err != nil {
			sock.Close()
			return nil, fmt.Errorf("the kernel rejects the filter: %w", err)
		}
	}
	t := &Tap{sock: sock}
	t.sock.Overruns() // of the time before the filter
	return t, nil
}

// FD is the descriptor to poll.
func (t *Tap) FD() int { return t.sock.fd }

// Close closes the tap.
func (t *Tap) Close() { t.sock.Close() }

// Read reads a batch of frames without waiting, and reports whether there may be more.
func (t *Tap) Read(b *RxBatch, take func(Tapped)) bool {
	b.Prepare(t.sock.Virtio, false, Slots)
	n, _ := b.Recv(t.sock.fd) // an error comes again, or passes
	for i := range n {
		t.take(b, i, take)
	}
	return n == Slots
}

func (t *Tap) take(b *RxBatch, i int, take func(Tapped)) {
	size := int(b.Msgs[i].Len)
	if t.sock.Virtio {
		size -= virtio.HeaderLen // it is in a buffer of its own
	}
	if size < 1 {
		return
	}
	f := Tapped{Length: size}
	if aux := b.Cmsg(i, unix.SOL_PACKET, unix.PACKET_AUXDATA); len(aux) >= int(unsafe.Sizeof(unix.TpacketAuxdata{})) {
		f.Length = int((*unix.TpacketAuxdata)(unsafe.Pointer(&aux[0])).Len)
	}
	if at := b.Cmsg(i, unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS); len(at) >= int(unsafe.Sizeof(unix.Timespec{})) {
		f.Time = (*unix.Timespec)(unsafe.Pointer(&at[0])).Nano()
	}
	f.Frame = FrameOf(b, i, size, t.sock.Virtio)
	f.Length += len(f.Frame) - size // a VLAN tag
	if t.sock.Virtio {
		f.Vnet = b.vnet[i][:virtio.HeaderLen]
	}
	take(f)
}

// Counts returns how many frames passed the filter, and for how many of them there was no room.
func (t *Tap) Counts() (received, dropped uint64) {
	if st, err := unix.GetsockoptTpacketStats(t.sock.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil { // they begin again
		t.stats.received += uint64(st.Packets)
		t.stats.dropped += uint64(st.Drops)
	}
	return t.stats.received, t.stats.dropped
}
