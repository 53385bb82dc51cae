package wire

import "encoding/binary"

// The wire protocol, version 1; docs/reference/wire.md has the layouts. Every datagram
// begins with the same 16 bytes, so that a stranger's is told by two comparisons:
//
//	0  u8   version (high 4 bits) and type (low 4 bits)
//	1  u8   flags
//	2  u16  data: fragment index; control: length of the datagram
//	4  u32  session, as the receiver numbered it; 0 before there is one
//	8  u64  data: token, or the AEAD counter; hello: the lab's tag; else: sequence
//
// All integers are big-endian, except inside the virtio-net header.
const protoVersion = 1

type msgType uint8

const (
	msgData msgType = iota + 1
	msgHello
	msgChallenge
	msgWelcome
	msgHeartbeat
	msgProbe
	msgProbeAck
)

const (
	prefixLen = 16
	// dataHeaderLen is what a data datagram has before its part of the frame.
	dataHeaderLen = 32
	// aeadTagLen is AES-GCM's tag (NIST SP 800-38D).
	aeadTagLen   = 16
	udpHeaderLen = 8
	// minMTU is the smallest path that is served: IPv6 guarantees 1280, tunnels
	// in Pod networks take a little more.
	minMTU = 1200
	// maxFrame is the longest frame with its virtio-net header: an IP packet of
	// 65,535 bytes, Ethernet and three tags.
	maxFrame = 65535 + 14 + 12 + vnetHdrLen
)

// flagVnet tells that the frame begins with a virtio-net header.
const flagVnet = 1

func typeByte(t msgType) byte { return protoVersion<<4 | byte(t) }

// dataHeader is the head of a data datagram after its first two bytes.
//
//	2  u16  fragment index
//	4  u32  session
//	8  u64  token or counter
//	16 u32  wire
//	20 u32  frame number, per wire and session
//	24 u32  length of the whole frame
//	28 u16  bytes of the frame in each fragment but the last
//	30 u16  zero
type dataHeader struct {
	flags    uint8
	index    uint16
	session  uint32
	token    uint64
	wire     uint32
	frame    uint32
	length   uint32
	fragSize uint16
}

// put writes the header over b's first dataHeaderLen bytes.
func (h *dataHeader) put(b []byte) {
	_ = b[dataHeaderLen-1]
	b[0] = typeByte(msgData)
	b[1] = h.flags
	binary.BigEndian.PutUint16(b[2:], h.index)
	binary.BigEndian.PutUint32(b[4:], h.session)
	binary.BigEndian.PutUint64(b[8:], h.token)
	binary.BigEndian.PutUint32(b[16:], h.wire)
	binary.BigEndian.PutUint32(b[20:], h.frame)
	binary.BigEndian.PutUint32(b[24:], h.length)
	binary.BigEndian.PutUint16(b[28:], h.fragSize)
	binary.BigEndian.PutUint16(b[30:], 0)
}

// parse reads the header of a datagram that is known to be data. It reports
// whether header and length agree: fragments cannot overlap or leave the frame,
// since every one's place follows from its index.
func (h *dataHeader) parse(b []byte, overhead int) bool {
	if len(b) < dataHeaderLen+overhead {
		return false
	}
	h.flags = b[1]
	h.index = binary.BigEndian.Uint16(b[2:])
	h.session = binary.BigEndian.Uint32(b[4:])
	h.token = binary.BigEndian.Uint64(b[8:])
	h.wire = binary.BigEndian.Uint32(b[16:])
	h.frame = binary.BigEndian.Uint32(b[20:])
	h.length = binary.BigEndian.Uint32(b[24:])
	h.fragSize = binary.BigEndian.Uint16(b[28:])
	size := len(b) - dataHeaderLen - overhead
	if h.length == 0 || h.length > maxFrame || h.fragSize == 0 || size == 0 {
		return false
	}
	off := int(h.index) * int(h.fragSize)
	rest := int(h.length) - off
	return rest > 0 && size == min(rest, int(h.fragSize))
}

// fragments is how many datagrams the frame fills.
func (h *dataHeader) fragments() int {
	return (int(h.length) + int(h.fragSize) - 1) / int(h.fragSize)
}

// whole tells whether one datagram is the frame.
func (h *dataHeader) whole() bool { return h.length <= uint32(h.fragSize) }

// fragmentSize is how much of a frame fits a datagram on a path.
func fragmentSize(pathMTU, ipHeader int, aead bool) int {
	n := pathMTU - ipHeader - udpHeaderLen - dataHeaderLen
	if aead {
		n -= aeadTagLen
	}
	return n
}
