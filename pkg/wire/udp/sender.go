//go:build linux

package udp

import (
	"encoding/binary"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
	"golang.org/x/sys/unix"
)

const (
	// gsoSegments is UDP_MAX_SEGMENTS of kernels before Linux 6.7.
	gsoSegments = 64
	// gsoBytes keeps a message and its IPv6 header below 64 KiB.
	gsoBytes = 65400
	// senderHeads bounds the datagrams of a batch.
	senderHeads = 512
	sealedBytes = 256 << 10
)

// Route is how a wire's frames reach the peer now. It is replaced, never changed.
type Route struct {
	Session  *proto.Session
	raw      datapath.RawAddr
	fragSize int // bytes of a frame in one datagram
}

// sender cuts frames into datagrams and sends them in batches. It does not
// copy frames: the datagrams consist of pieces of them. One goroutine uses it.
type sender struct {
	u     *Path
	out   datapath.TxBatch
	heads [senderHeads][proto.DataHeaderLen]byte
	nhead int
	// sealed holds what is encrypted; nil until needed.
	sealed []byte
	used   int

	// The message that is being filled: datagrams of size bytes, the last may be
	// shorter and closes it.
	path   *Route
	size   int
	count  int
	bytes  int
	closed bool
}

// NewSender returns what one goroutine needs to send frames.
func (u *Path) NewSender() datapath.Batch {
	s := &sender{u: u}
	s.out.FD, s.out.Waits = u.Sock.FD, true
	s.out.Failed = s.failed
	return s
}

// frame queues a frame; vnet is its virtio-net header or nil. Both must stay
// until flush.
func (s *sender) frame(w *Wire, p *Route, vnet, frame []byte) {
	h := proto.DataHeader{Session: p.Session.RemoteID, Token: p.Session.TX.Token, Wire: uint32(w.ID), Frame: w.FrameNo.Add(1), FragSize: uint16(p.fragSize)}
	if len(vnet) >= virtio.HeaderLen && vnet[0]|vnet[1] != 0 {
		h.Flags, vnet = proto.FlagVirtio, vnet[:virtio.HeaderLen]
	} else {
		vnet = nil
	}
	h.Length = uint32(len(vnet) + len(frame))
	if h.Length > proto.MaxFrame || p.fragSize <= virtio.HeaderLen {
		w.Drops.Add(drop.Size)
		return
	}
	for i, n := 0, h.Fragments(); i < n; i++ {
		h.Index = uint16(i)
		part := frame[:min(len(frame), p.fragSize-len(vnet))]
		s.datagram(p, &h, vnet, part)
		frame, vnet = frame[len(part):], nil
	}
	w.TxFrames.Add(1)
	w.TxBytes.Add(uint64(h.Length))
}

// datagram queues a datagram, in one message with others of the same size if possible.
func (s *sender) datagram(p *Route, h *proto.DataHeader, vnet, part []byte) {
	size := proto.DataHeaderLen + len(vnet) + len(part)
	if p.Session.AEAD {
		size += proto.SealLen
		if s.sealed == nil {
			s.sealed = make([]byte, sealedBytes)
		}
	}
	if !s.out.Room(4) || s.nhead == senderHeads || (p.Session.AEAD && s.used+size > sealedBytes) {
		s.Flush()
	}
	if s.count == 0 || s.closed || s.path != p || size > s.size || s.count == gsoSegments || s.bytes+size > gsoBytes || !s.u.gso.Load() {
		s.finish()
		s.out.Start()
		s.out.To(&p.raw)
		s.path, s.size, s.closed = p, size, false
	}
	s.closed = size < s.size
	s.count++
	s.bytes += size
	if p.Session.AEAD {
		s.out.Piece(s.seal(p, h, vnet, part, size))
		return
	}
	head := &s.heads[s.nhead]
	s.nhead++
	h.Put(head[:])
	s.out.Piece(head[:])
	s.out.Piece(vnet)
	s.out.Piece(part)
}

// seal encrypts a datagram (AES-GCM, NIST SP 800-38D). The nonce is a counter that
// the session uses once; the header is authenticated.
func (s *sender) seal(p *Route, h *proto.DataHeader, vnet, part []byte, size int) []byte {
	b := s.sealed[s.used : s.used+size : s.used+size]
	s.used += size
	h.Token = p.Session.Counter.Add(1)
	h.Put(b)
	n := proto.DataHeaderLen
	n += copy(b[n:], vnet)
	n += copy(b[n:], part)
	nonce := aeadNonce(h.Token)
	p.Session.TX.AEAD.Seal(b[:proto.DataHeaderLen], nonce[:], b[proto.DataHeaderLen:n], b[:proto.DataHeaderLen])
	return b
}

func aeadNonce(counter uint64) (n [12]byte) {
	binary.BigEndian.PutUint64(n[4:], counter)
	return n
}

// finish closes the message that is being filled.
func (s *sender) finish() {
	if s.count > 1 {
		s.out.Segments(s.size)
	}
	s.count, s.bytes = 0, 0
}

// Flush sends what is queued.
func (s *sender) Flush() {
	s.finish()
	if s.out.N > 0 {
		s.out.Flush()
	}
	s.nhead, s.used = 0, 0
}

// failed handles a message that the kernel rejected.
func (s *sender) failed(i int, e unix.Errno) {
	m := &s.out.Msgs[i].Hdr
	switch {
	case m.Control != nil && (e == unix.EIO || e == unix.EINVAL || e == unix.ENOPROTOOPT || e == unix.EOPNOTSUPP):
		// The path cannot segment (no checksum offload, an old kernel): one by one.
		if s.u.gso.Swap(false) {
			s.u.Log.Warn("the underlay does not take segmented datagrams; they are sent one by one", "error", e)
		}
		s.oneByOne(m)
	case e == unix.EMSGSIZE:
		s.u.Drops.Add(drop.Size)
		s.u.TooBig()
	default:
		s.u.Drops.Add(drop.Queue)
	}
}

// oneByOne sends the datagrams of a message without UDP_SEGMENT.
func (s *sender) oneByOne(m *unix.Msghdr) {
	size := int(binary.NativeEndian.Uint16(datapath.ControlData(m)))
	iovs := datapath.Iovecs(m)
	for len(iovs) > 0 {
		n, got := 0, 0
		for n < len(iovs) && got < size {
			got += int(iovs[n].Len)
			n++
		}
		one := unix.Msghdr{Name: m.Name, Namelen: m.Namelen, Iov: &iovs[0], Iovlen: uint64(n)}
		if e := datapath.Sendmsg(s.out.FD, &one); e != 0 {
			s.u.Drops.Add(drop.Queue)
		}
		iovs = iovs[n:]
	}
}
