// Package virtio reads and writes the virtio-net headers by which Linux hands over
// frames with unfinished checksums and several segments in one, and finishes such frames.
package virtio

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sync"
)

// HeaderLen is struct virtio_net_hdr (linux/virtio_net.h), little-endian on
// every machine that this runs on.
const HeaderLen = 10

// The flags and types of a virtio-net header.
const (
	needsChecksum = 1

	gsoNone  = 0
	gsoTCPv4 = 1
	gsoTCPv6 = 4
	gsoUDPL4 = 5
	gsoECN   = 0x80
)

// Header says what is unfinished about a frame: a checksum that is still the
// pseudo-header's sum, and segments that are still one.
type Header struct {
	flags     uint8
	gsoType   uint8
	hdrLen    uint16 // bytes before the payload, a hint
	gsoSize   uint16 // payload bytes a segment
	csumStart uint16 // from the frame's first byte
	csumOff   uint16 // of the checksum, from csumStart
}

// Parse reads the header from b's first HeaderLen bytes.
func (h *Header) Parse(b []byte) {
	_ = b[HeaderLen-1]
	h.flags, h.gsoType = b[0], b[1]
	h.hdrLen = binary.LittleEndian.Uint16(b[2:])
	h.gsoSize = binary.LittleEndian.Uint16(b[4:])
	h.csumStart = binary.LittleEndian.Uint16(b[6:])
	h.csumOff = binary.LittleEndian.Uint16(b[8:])
}

// Put writes the header over b's first HeaderLen bytes.
func (h *Header) Put(b []byte) {
	_ = b[HeaderLen-1]
	b[0], b[1] = h.flags, h.gsoType
	binary.LittleEndian.PutUint16(b[2:], h.hdrLen)
	binary.LittleEndian.PutUint16(b[4:], h.gsoSize)
	binary.LittleEndian.PutUint16(b[6:], h.csumStart)
	binary.LittleEndian.PutUint16(b[8:], h.csumOff)
}

// GSO reports whether the frame stands for several segments.
func (h *Header) GSO() bool { return h.gsoType&^gsoECN != gsoNone }

// Shift moves the header's places by n bytes, for a VLAN tag put in.
func (h *Header) Shift(n uint16) {
	if h.flags&needsChecksum != 0 {
		h.csumStart += n
	}
	if h.hdrLen != 0 {
		h.hdrLen += n
	}
}

var errSuperFrame = errors.New("super-frame that is none")

// SuperFrame is a frame that stands for several, taken apart: the headers, where
// in them the fields are that differ from segment to segment, and the payload.
type SuperFrame struct {
	vnet   Header
	Header []byte
	l3, l4 int // offsets in header
	v6     bool
	size   int // payload bytes a segment, but the last
	total  int // payload bytes
}

// Parse reads the headers of frame, which may end anywhere after them; total is
// the length of the whole frame.
func (s *SuperFrame) Parse(vnet Header, frame []byte, total int) error {
	s.vnet = vnet
	s.l3 = networkOffset(frame)
	s.l4 = int(vnet.csumStart)
	kind := vnet.gsoType &^ gsoECN
	if vnet.flags&needsChecksum == 0 || vnet.gsoSize == 0 || s.l3 == 0 || s.l4 < s.l3+20 || len(frame) < s.l4+8 {
		return errSuperFrame
	}
	s.v6 = frame[s.l3]>>4 == 6
	end := s.l4 + 8
	switch {
	case kind == gsoTCPv4 && !s.v6, kind == gsoTCPv6 && s.v6:
		if len(frame) < s.l4+20 || frame[s.l4+12]>>4 < 5 {
			return errSuperFrame
		}
		end = s.l4 + int(frame[s.l4+12]>>4)*4
	case kind == gsoUDPL4:
	default:
		return errSuperFrame
	}
	if (s.v6 && s.l4 < s.l3+40) || len(frame) < end || total <= end || int(vnet.csumOff) > end-s.l4-2 {
		return errSuperFrame
	}
	s.Header, s.size, s.total = frame[:end], int(vnet.gsoSize), total-end
	return nil
}

func (s *SuperFrame) tcp() bool { return s.vnet.gsoType&^gsoECN != gsoUDPL4 }

// Segments is how many frames it stands for.
func (s *SuperFrame) Segments() int { return (s.total + s.size - 1) / s.size }

// Payload is the range of segments [from, to) in the payload.
func (s *SuperFrame) Payload(from, to int) (int, int) {
	return from * s.size, min(to*s.size, s.total)
}

// Slice writes the headers of segments [from, to) over dst, which is as long as
// s.header, and returns the virtio-net header for them. The checksum is left to
// be finished, as it was.
func (s *SuperFrame) Slice(dst []byte, from, to int) Header {
	copy(dst, s.Header)
	lo, hi := s.Payload(from, to)
	length := len(s.Header) - s.l4 + hi - lo // transport header and payload
	if s.v6 {
		binary.BigEndian.PutUint16(dst[s.l3+4:], uint16(s.l4-s.l3-40+length))
	} else {
		ip := dst[s.l3:s.l4]
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+length))
		binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(from))
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^Fold(AddSum(0, ip)))
	}
	l4 := dst[s.l4:]
	if s.tcp() {
		binary.BigEndian.PutUint32(l4[4:], binary.BigEndian.Uint32(l4[4:])+uint32(lo))
		const fin, psh, cwr = 1, 8, 0x80
		if hi < s.total {
			l4[13] &^= fin | psh
		}
		if from > 0 {
			l4[13] &^= cwr
		}
	} else {
		binary.BigEndian.PutUint16(l4[4:], uint16(length))
	}
	binary.BigEndian.PutUint16(l4[s.vnet.csumOff:], s.pseudo(dst, length))
	v := s.vnet
	v.hdrLen = uint16(len(s.Header))
	if to-from == 1 {
		v.gsoType, v.gsoSize = gsoNone, 0
	}
	return v
}

// pseudo is the pseudo-header's sum (RFC 9293, 3.1; RFC 8200, 8.1), as Linux
// leaves it in the checksum field of an unfinished packet.
func (s *SuperFrame) pseudo(header []byte, length int) uint16 {
	proto := uint32(6)
	if !s.tcp() {
		proto = 17
	}
	addrs := header[s.l3+12 : s.l3+20]
	if s.v6 {
		addrs = header[s.l3+8 : s.l3+40]
	}
	return Fold(AddSum(uint64(proto)+uint64(length), addrs))
}

// networkOffset is where the network header begins, behind VLAN tags; 0 for a
// frame that is neither IPv4 nor IPv6.
func networkOffset(frame []byte) int {
	for off := 12; len(frame) >= off+4; off += 4 {
		switch binary.BigEndian.Uint16(frame[off:]) {
		case 0x8100, 0x88a8, 0x9100:
			continue
		case 0x0800, 0x86dd:
			return off + 2
		}
		return 0
	}
	return 0
}

// finishChecksum completes the checksum of a whole frame.
func finishChecksum(vnet Header, frame []byte) bool {
	start, at := int(vnet.csumStart), int(vnet.csumStart)+int(vnet.csumOff)
	if start >= len(frame) || at+2 > len(frame) {
		return false
	}
	c := ^Fold(AddSum(0, frame[start:]))
	if c == 0 {
		c = 0xffff // RFC 768: zero would mean none
	}
	binary.BigEndian.PutUint16(frame[at:], c)
	return true
}

// segments are buffers of Segment.
var segments = sync.Pool{New: func() any { return new([]byte) }}

// Segment calls emit with every frame that the given one stands for, with
// finished checksums. What emit is given is valid until it returns.
func Segment(vnet Header, frame []byte, emit func([]byte)) error {
	if !vnet.GSO() {
		if vnet.flags&needsChecksum != 0 && !finishChecksum(vnet, frame) {
			return errSuperFrame
		}
		emit(frame)
		return nil
	}
	var s SuperFrame
	if err := s.Parse(vnet, frame, len(frame)); err != nil {
		return err
	}
	buffer := segments.Get().(*[]byte)
	defer segments.Put(buffer)
	out := slices.Grow((*buffer)[:0], len(s.Header)+s.size)[:len(s.Header)+s.size]
	*buffer = out
	for i := range s.Segments() {
		v := s.Slice(out[:len(s.Header)], i, i+1)
		lo, hi := s.Payload(i, i+1)
		n := len(s.Header) + copy(out[len(s.Header):], frame[len(s.Header):][lo:hi])
		if !finishChecksum(v, out[:n]) {
			return errSuperFrame
		}
		emit(out[:n])
	}
	return nil
}

// AddSum adds b's 16-bit words (RFC 1071) to a sum, in one's complement arithmetic of 64 bits:
// its carries come round, which keeps the sum of the 16-bit words that Fold makes of it.
func AddSum(sum uint64, b []byte) uint64 {
	var carry uint64
	for ; len(b) >= 32; b = b[32:] {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[8:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[16:]), carry)
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b[24:]), carry)
	}
	for ; len(b) >= 8; b = b[8:] {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
	}
	if sum += carry; sum < carry {
		sum++
	}
	sum = sum>>32 + sum&0xffffffff // room for the rest
	for ; len(b) >= 2; b = b[2:] {
		sum += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

// Fold makes a 16-bit sum of what AddSum returns.
func Fold(sum uint64) uint16 {
	for sum>>16 != 0 {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
