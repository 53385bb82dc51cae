//go:build linux

package datapath

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"github.com/c9s-lab/c9s/pkg/wire/virtio"
	"golang.org/x/sys/unix"
)

// The system calls of the datapath never block, so they bypass the scheduler (RawSyscall):
// copying 64 KB takes too little time to hand the processor to another goroutine.

const (
	// Slots is how many datagrams or frames one call takes.
	Slots = 32
	// slotSize holds the longest frame with its header, or UDP's longest payload.
	slotSize = 68 << 10
	// slotRoom is free space before the frame in a slot, so that inserting a VLAN tag
	// moves only the addresses.
	slotRoom = 16
	// batchBytes is how much one call should return: more does not stay in the
	// processor's cache until it is sent.
	batchBytes = 256 << 10
	// controlLen holds the auxiliary data of a packet socket and a timestamp.
	controlLen = 96
)

// RawAddr is a socket address of the underlay, IPv4 mapped into IPv6.
type RawAddr = unix.RawSockaddrInet6

// ToRaw returns an address as the kernel takes it.
func ToRaw(ap netip.AddrPort) RawAddr {
	r := RawAddr{Family: unix.AF_INET6, Addr: ap.Addr().As16()}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&r.Port))[:], ap.Port())
	return r
}

// FromRaw is the inverse of ToRaw.
func FromRaw(r *RawAddr) netip.AddrPort {
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&r.Port))[:])
	return netip.AddrPortFrom(netip.AddrFrom16(r.Addr).Unmap(), port)
}

// RxBatch is the memory of one receiving call. A reader borrows it while there is
// something to read, so that idle legs cost no memory.
type RxBatch struct {
	mem   []byte
	Msgs  [Slots]unix.Mmsghdr
	iovs  [Slots][2]unix.Iovec
	vnet  [Slots][virtio.HeaderLen + 6]byte
	ctrl  [Slots][controlLen]byte
	Names [Slots]RawAddr
	Want  int     // messages to ask for
	laid  [2]bool // how they are laid out
	ready bool
}

// NewRxBatch allocates a batch.
func NewRxBatch() (*RxBatch, error) {
	mem, err := unix.Mmap(-1, 0, Slots*slotSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return &RxBatch{mem: mem}, nil
}

// Free releases its memory.
func (r *RxBatch) Free() { unix.Munmap(r.mem) }

// Slot is the memory of message i.
func (r *RxBatch) Slot(i int) []byte { return r.mem[i*slotSize : (i+1)*slotSize : (i+1)*slotSize] }

// Prepare lays out the messages: for a leg with the virtio-net header apart from the
// frame, for the underlay with the sender's address.
func (r *RxBatch) Prepare(vnet, names bool, want int) {
	r.Want = want
	if r.laid == [2]bool{vnet, names} && r.ready {
		return
	}
	r.laid, r.ready = [2]bool{vnet, names}, true
	for i := range r.Msgs {
		iov := &r.iovs[i]
		h := &r.Msgs[i].Hdr
		*h = unix.Msghdr{Control: &r.ctrl[i][0]}
		room := 0
		n := 0
		if vnet {
			iov[0].Base, iov[0].Len = &r.vnet[i][0], virtio.HeaderLen
			n = 1
		}
		if !names {
			room = slotRoom
		}
		iov[n].Base, iov[n].Len = &r.mem[i*slotSize+room], uint64(slotSize-room)
		h.Iov, h.Iovlen = &iov[0], uint64(n+1)
		if names {
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&r.Names[i])), unix.SizeofSockaddrInet6
		}
	}
}

// Recv reads at most want messages without waiting.
func (r *RxBatch) Recv(fd int) (int, unix.Errno) {
	for i := range r.Want {
		r.Msgs[i].Hdr.Controllen = controlLen
		if r.Msgs[i].Hdr.Name != nil {
			r.Msgs[i].Hdr.Namelen = unix.SizeofSockaddrInet6
		}
	}
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.Msgs)), uintptr(r.Want), unix.MSG_DONTWAIT, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return 0, e
		}
		return int(n), 0
	}
}

// Wanted is how much the next call should ask for, by what the last one brought.
func Wanted(n, bytes int) int { return min(Slots, max(2, batchBytes/max(1, bytes/n))) }

// Cmsg finds a control message of message i.
func (r *RxBatch) Cmsg(i int, level, kind int32) []byte {
	b := r.ctrl[i][:r.Msgs[i].Hdr.Controllen]
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		if h.Len < unix.SizeofCmsghdr || h.Len > uint64(len(b)) {
			return nil
		}
		if h.Level == level && h.Type == kind {
			return b[unix.SizeofCmsghdr:h.Len]
		}
		b = b[min(len(b), (int(h.Len)+7)&^7):]
	}
	return nil
}

// Pool keeps a few batches for the next reader.
type Pool chan *RxBatch

// NewPool returns an empty pool.
func NewPool() Pool { return make(Pool, 2) }

// Get returns a kept batch or a new one.
func (p Pool) Get() (*RxBatch, error) {
	select {
	case r := <-p:
		return r, nil
	default:
		return NewRxBatch()
	}
}

// Put keeps a batch or frees it.
func (p Pool) Put(r *RxBatch) {
	select {
	case p <- r:
	default:
		r.Free()
	}
}

// Close frees what is kept. Nothing reads any more.
func (p Pool) Close() {
	for {
		select {
		case r := <-p:
			r.Free()
		default:
			return
		}
	}
}

const (
	TxMsgs = 64
	txIovs = 1024
)

// TxBatch collects messages for one sending call. What the iovecs point at must
// stay until it is flushed.
type TxBatch struct {
	FD    int
	N     int // messages
	Niov  int
	Msgs  [TxMsgs]unix.Mmsghdr
	iovs  [txIovs]unix.Iovec
	ctrl  [TxMsgs][24]byte
	names [TxMsgs]RawAddr
	// Failed is called for each message that was not sent.
	Failed func(i int, e unix.Errno)
	// Waits is set if flush waits a little for a full socket.
	Waits bool
}

// Room reports whether a message of niov pieces fits.
func (t *TxBatch) Room(niov int) bool { return t.N < TxMsgs && t.Niov+niov <= txIovs }

// Start begins a message.
func (t *TxBatch) Start() *unix.Msghdr {
	h := &t.Msgs[t.N].Hdr
	*h = unix.Msghdr{Iov: &t.iovs[t.Niov]}
	t.N++
	return h
}

// Piece adds bytes to the last message.
func (t *TxBatch) Piece(b []byte) {
	if len(b) == 0 {
		return
	}
	v := &t.iovs[t.Niov]
	v.Base, v.Len = &b[0], uint64(len(b))
	t.Niov++
	t.Msgs[t.N-1].Hdr.Iovlen++
}

// To sets the last message's destination.
func (t *TxBatch) To(a *RawAddr) {
	t.names[t.N-1] = *a
	h := &t.Msgs[t.N-1].Hdr
	h.Name, h.Namelen = (*byte)(unsafe.Pointer(&t.names[t.N-1])), unix.SizeofSockaddrInet6
}

// Segments sets the last message's UDP_SEGMENT (linux/udp.h), bytes a datagram.
func (t *TxBatch) Segments(size int) {
	c := &t.ctrl[t.N-1]
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
	h.Len, h.Level, h.Type = uint64(unix.CmsgLen(2)), unix.IPPROTO_UDP, unix.UDP_SEGMENT
	binary.NativeEndian.PutUint16(c[unix.SizeofCmsghdr:], uint16(size))
	m := &t.Msgs[t.N-1].Hdr
	m.Control = &c[0]
	m.Controllen = uint64(unix.CmsgSpace(2))
}

// Flush sends all and empties the batch.
func (t *TxBatch) Flush() {
	waited := false
	for i := 0; i < t.N; {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(t.FD), uintptr(unsafe.Pointer(&t.Msgs[i])), uintptr(t.N-i), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch {
		case e == 0:
			i += int(n)
		case e == unix.EINTR:
		case e == unix.EAGAIN && t.Waits && !waited:
			// The underlay's queue is full. The sender's own queue fills meanwhile.
			waited = true
			unix.Poll([]unix.PollFd{{Fd: int32(t.FD), Events: unix.POLLOUT}}, 10)
		default:
			t.Failed(i, e)
			i++
		}
	}
	clear(t.iovs[:t.Niov]) // or they would keep memory alive
	t.N, t.Niov = 0, 0
}

// ControlData is what a message's one control message holds.
func ControlData(m *unix.Msghdr) []byte {
	return unsafe.Slice(m.Control, m.Controllen)[unix.SizeofCmsghdr:]
}

// Iovecs are the pieces of a message.
func Iovecs(m *unix.Msghdr) []unix.Iovec { return unsafe.Slice(m.Iov, m.Iovlen) }

// Sendmsg sends one message without waiting.
func Sendmsg(fd int, m *unix.Msghdr) unix.Errno {
	for {
		_, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if e != unix.EINTR {
			return e
		}
	}
}
