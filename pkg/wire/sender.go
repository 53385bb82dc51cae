//go:build linux

package wire

import (
	"encoding/binary"

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

// txPath is how a wire's frames reach the peer now. It is replaced, never changed.
type txPath struct {
	s        *session
	raw      rawAddr
	fragSize int // bytes of a frame in one datagram
}

// sender cuts frames into datagrams and sends them in batches. The frames are not
// copied: the datagrams are made of pieces of them. One goroutine uses it.
type sender struct {
	f     *Fabric
	out   txBatch
	heads [senderHeads][dataHeaderLen]byte
	nhead int
	// sealed holds what is encrypted; nil until needed.
	sealed []byte
	used   int

	// The message that is being filled: datagrams of size bytes, the last may be
	// shorter and closes it.
	path   *txPath
	size   int
	count  int
	bytes  int
	closed bool
}

func newSender(f *Fabric) *sender {
	s := &sender{f: f}
	s.out.fd, s.out.waits = f.sock.fd, true
	s.out.failed = s.failed
	return s
}

// frame queues a frame; vnet is its virtio-net header or nil. Both must stay
// until flush.
func (s *sender) frame(w *wireEnd, p *txPath, vnet, frame []byte) {
	h := dataHeader{session: p.s.remoteID, token: p.s.tx.token, wire: uint32(w.id), frame: w.frameNo.Add(1), fragSize: uint16(p.fragSize)}
	if len(vnet) >= vnetHdrLen && vnet[0]|vnet[1] != 0 {
		h.flags, vnet = flagVnet, vnet[:vnetHdrLen]
	} else {
		vnet = nil
	}
	h.length = uint32(len(vnet) + len(frame))
	if h.length > maxFrame || p.fragSize <= vnetHdrLen {
		w.drops.add(dropSize)
		return
	}
	for i, n := 0, h.fragments(); i < n; i++ {
		h.index = uint16(i)
		part := frame[:min(len(frame), p.fragSize-len(vnet))]
		s.datagram(p, &h, vnet, part)
		frame, vnet = frame[len(part):], nil
	}
	w.txFrames.Add(1)
	w.txBytes.Add(uint64(h.length))
}

// datagram queues one, behind its like in one message where it can.
func (s *sender) datagram(p *txPath, h *dataHeader, vnet, part []byte) {
	size := dataHeaderLen + len(vnet) + len(part)
	if p.s.aead {
		size += aeadTagLen
		if s.sealed == nil {
			s.sealed = make([]byte, sealedBytes)
		}
	}
	if !s.out.room(4) || s.nhead == senderHeads || (p.s.aead && s.used+size > sealedBytes) {
		s.flush()
	}
	if s.count == 0 || s.closed || s.path != p || size > s.size || s.count == gsoSegments || s.bytes+size > gsoBytes || !s.f.gso.Load() {
		s.finish()
		s.out.start()
		s.out.to(&p.raw)
		s.path, s.size, s.closed = p, size, false
	}
	s.closed = size < s.size
	s.count++
	s.bytes += size
	if p.s.aead {
		s.out.piece(s.seal(p, h, vnet, part, size))
		return
	}
	head := &s.heads[s.nhead]
	s.nhead++
	h.put(head[:])
	s.out.piece(head[:])
	s.out.piece(vnet)
	s.out.piece(part)
}

// seal encrypts a datagram (AES-GCM, NIST SP 800-38D). The nonce is a counter that
// the session uses once; the header is authenticated.
func (s *sender) seal(p *txPath, h *dataHeader, vnet, part []byte, size int) []byte {
	b := s.sealed[s.used : s.used+size : s.used+size]
	s.used += size
	h.token = p.s.counter.Add(1)
	h.put(b)
	n := dataHeaderLen
	n += copy(b[n:], vnet)
	n += copy(b[n:], part)
	nonce := aeadNonce(h.token)
	p.s.tx.aead.Seal(b[:dataHeaderLen], nonce[:], b[dataHeaderLen:n], b[:dataHeaderLen])
	return b
}

func aeadNonce(counter uint64) (n [12]byte) {
	binary.BigEndian.PutUint64(n[4:], counter)
	return n
}

// finish closes the message that is being filled.
func (s *sender) finish() {
	if s.count > 1 {
		s.out.segments(s.size)
	}
	s.count, s.bytes = 0, 0
}

// flush sends what is queued.
func (s *sender) flush() {
	s.finish()
	if s.out.n > 0 {
		s.out.flush()
	}
	s.nhead, s.used = 0, 0
}

// failed takes a message that the kernel refused.
func (s *sender) failed(i int, e unix.Errno) {
	m := &s.out.msgs[i].Hdr
	switch {
	case m.Control != nil && (e == unix.EIO || e == unix.EINVAL || e == unix.ENOPROTOOPT || e == unix.EOPNOTSUPP):
		// The path cannot segment (no checksum offload, an old kernel): one by one.
		if s.f.gso.Swap(false) {
			s.f.opt.Log.Warn("the underlay does not take segmented datagrams; they are sent one by one", "error", e)
		}
		s.oneByOne(m)
	case e == unix.EMSGSIZE:
		s.f.drops.add(dropSize)
		s.f.tooBig()
	default:
		s.f.drops.add(dropQueue)
	}
}

// oneByOne sends the datagrams of a message without UDP_SEGMENT.
func (s *sender) oneByOne(m *unix.Msghdr) {
	size := int(binary.NativeEndian.Uint16(controlData(m)))
	iovs := iovecs(m)
	for len(iovs) > 0 {
		n, got := 0, 0
		for n < len(iovs) && got < size {
			got += int(iovs[n].Len)
			n++
		}
		one := unix.Msghdr{Name: m.Name, Namelen: m.Namelen, Iov: &iovs[0], Iovlen: uint64(n)}
		if e := sendmsg(s.out.fd, &one); e != 0 {
			s.f.drops.add(dropQueue)
		}
		iovs = iovs[n:]
	}
}
