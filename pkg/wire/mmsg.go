//go:build linux

package wire

import (
	"encoding/binary"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The datapath's system calls never block, so they go past the scheduler
// (RawSyscall): it need not know of them, and a copy of 64 KB is too short for
// handing the processor on.

const (
	// slots is how many datagrams or frames one call takes.
	slots = 32
	// slotSize holds the longest frame with its header, or UDP's longest payload.
	slotSize = 68 << 10
	// slotRoom is before the frame in a slot: a VLAN tag is put in without moving
	// more than the addresses.
	slotRoom = 16
	// batchBytes is what one call should bring: more does not stay in the
	// processor's cache until it is sent.
	batchBytes = 256 << 10
	controlLen = 64
)

// rawAddr is a socket address of the underlay, IPv4 mapped into IPv6.
type rawAddr = unix.RawSockaddrInet6

func toRaw(ap netip.AddrPort) rawAddr {
	r := rawAddr{Family: unix.AF_INET6, Addr: ap.Addr().As16()}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&r.Port))[:], ap.Port())
	return r
}

func fromRaw(r *rawAddr) netip.AddrPort {
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&r.Port))[:])
	return netip.AddrPortFrom(netip.AddrFrom16(r.Addr).Unmap(), port)
}

// rxBatch is the memory of one receiving call. It is lent to a reader while
// there is something to read, so that idle legs cost no memory.
type rxBatch struct {
	mem   []byte
	msgs  [slots]unix.Mmsghdr
	iovs  [slots][2]unix.Iovec
	vnet  [slots][vnetHdrLen + 6]byte
	ctrl  [slots][controlLen]byte
	names [slots]rawAddr
	want  int     // how many to ask for
	laid  [2]bool // how they are laid out
	ready bool
}

func newRxBatch() (*rxBatch, error) {
	mem, err := unix.Mmap(-1, 0, slots*slotSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return &rxBatch{mem: mem}, nil
}

func (r *rxBatch) free() { unix.Munmap(r.mem) }

// slot is the memory of message i.
func (r *rxBatch) slot(i int) []byte { return r.mem[i*slotSize : (i+1)*slotSize : (i+1)*slotSize] }

// prepare lays the messages out: for a leg, the virtio-net header apart from the
// frame; for the underlay, the sender's address.
func (r *rxBatch) prepare(vnet, names bool, want int) {
	r.want = want
	if r.laid == [2]bool{vnet, names} && r.ready {
		return
	}
	r.laid, r.ready = [2]bool{vnet, names}, true
	for i := range r.msgs {
		iov := &r.iovs[i]
		h := &r.msgs[i].Hdr
		*h = unix.Msghdr{Control: &r.ctrl[i][0]}
		room := 0
		n := 0
		if vnet {
			iov[0].Base, iov[0].Len = &r.vnet[i][0], vnetHdrLen
			n = 1
		}
		if !names {
			room = slotRoom
		}
		iov[n].Base, iov[n].Len = &r.mem[i*slotSize+room], uint64(slotSize-room)
		h.Iov, h.Iovlen = &iov[0], uint64(n+1)
		if names {
			h.Name, h.Namelen = (*byte)(unsafe.Pointer(&r.names[i])), unix.SizeofSockaddrInet6
		}
	}
}

// recv reads what is there, at most want messages, without waiting.
func (r *rxBatch) recv(fd int) (int, unix.Errno) {
	for i := range r.want {
		r.msgs[i].Hdr.Controllen = controlLen
		if r.msgs[i].Hdr.Name != nil {
			r.msgs[i].Hdr.Namelen = unix.SizeofSockaddrInet6
		}
	}
	for {
		n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.msgs)), uintptr(r.want), unix.MSG_DONTWAIT, 0, 0)
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return 0, e
		}
		return int(n), 0
	}
}

// wanted is how much the next call should ask for, by what the last one brought.
func wanted(n, bytes int) int { return min(slots, max(2, batchBytes/max(1, bytes/n))) }

// cmsg finds a control message of message i.
func (r *rxBatch) cmsg(i int, level, kind int32) []byte {
	b := r.ctrl[i][:r.msgs[i].Hdr.Controllen]
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

// batchPool keeps a few batches for the next reader that has work.
type batchPool chan *rxBatch

func newBatchPool() batchPool { return make(batchPool, 2) }

func (p batchPool) get() (*rxBatch, error) {
	select {
	case r := <-p:
		return r, nil
	default:
		return newRxBatch()
	}
}

func (p batchPool) put(r *rxBatch) {
	select {
	case p <- r:
	default:
		r.free()
	}
}

// close frees what is kept; nobody reads any more.
func (p batchPool) close() {
	for {
		select {
		case r := <-p:
			r.free()
		default:
			return
		}
	}
}

const (
	txMsgs = 64
	txIovs = 1024
)

// txBatch collects messages for one sending call. What the iovecs point at must
// stay until it is flushed.
type txBatch struct {
	fd    int
	n     int // messages
	niov  int
	msgs  [txMsgs]unix.Mmsghdr
	iovs  [txIovs]unix.Iovec
	ctrl  [txMsgs][24]byte
	names [txMsgs]rawAddr
	// failed is called for each message that was not sent.
	failed func(i int, e unix.Errno)
	// waits tells that a full socket is waited for, a little.
	waits bool
}

// room tells whether a message of niov pieces fits.
func (t *txBatch) room(niov int) bool { return t.n < txMsgs && t.niov+niov <= txIovs }

// start begins a message.
func (t *txBatch) start() *unix.Msghdr {
	h := &t.msgs[t.n].Hdr
	*h = unix.Msghdr{Iov: &t.iovs[t.niov]}
	t.n++
	return h
}

// piece adds bytes to the last message.
func (t *txBatch) piece(b []byte) {
	if len(b) == 0 {
		return
	}
	v := &t.iovs[t.niov]
	v.Base, v.Len = &b[0], uint64(len(b))
	t.niov++
	t.msgs[t.n-1].Hdr.Iovlen++
}

// to sets the last message's destination.
func (t *txBatch) to(a *rawAddr) {
	t.names[t.n-1] = *a
	h := &t.msgs[t.n-1].Hdr
	h.Name, h.Namelen = (*byte)(unsafe.Pointer(&t.names[t.n-1])), unix.SizeofSockaddrInet6
}

// segments sets the last message's UDP_SEGMENT (linux/udp.h), bytes a datagram.
func (t *txBatch) segments(size int) {
	c := &t.ctrl[t.n-1]
	h := (*unix.Cmsghdr)(unsafe.Pointer(&c[0]))
	h.Len, h.Level, h.Type = uint64(unix.CmsgLen(2)), unix.IPPROTO_UDP, unix.UDP_SEGMENT
	binary.NativeEndian.PutUint16(c[unix.SizeofCmsghdr:], uint16(size))
	m := &t.msgs[t.n-1].Hdr
	m.Control = &c[0]
	m.Controllen = uint64(unix.CmsgSpace(2))
}

// flush sends all and empties the batch.
func (t *txBatch) flush() {
	waited := false
	for i := 0; i < t.n; {
		n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(t.fd), uintptr(unsafe.Pointer(&t.msgs[i])), uintptr(t.n-i), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch {
		case e == 0:
			i += int(n)
		case e == unix.EINTR:
		case e == unix.EAGAIN && t.waits && !waited:
			// The underlay's queue is full: the sender's own queue fills behind it.
			waited = true
			unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLOUT}}, 10)
		default:
			t.failed(i, e)
			i++
		}
	}
	clear(t.iovs[:t.niov]) // or they would keep memory alive
	t.n, t.niov = 0, 0
}

// controlData is what a message's one control message holds.
func controlData(m *unix.Msghdr) []byte {
	return unsafe.Slice(m.Control, m.Controllen)[unix.SizeofCmsghdr:]
}

func iovecs(m *unix.Msghdr) []unix.Iovec { return unsafe.Slice(m.Iov, m.Iovlen) }

func sendmsg(fd int, m *unix.Msghdr) unix.Errno {
	for {
		_, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		if e != unix.EINTR {
			return e
		}
	}
}
