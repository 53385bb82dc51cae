// Package proto is the wire protocol without sockets: the messages, the keys, and the
// engine that keeps sessions with the peers. docs/reference/wire.md describes it.
package proto

import (
	"encoding/binary"

	"github.com/c9s-lab/c9s/pkg/wire/virtio"
)

// The wire protocol, version 1; docs/reference/wire.md has the layouts. Every datagram
// begins with the same 16 bytes, so that two comparisons identify a stranger's:
//
//	0  u8   version (high 4 bits) and type (low 4 bits)
//	1  u8   flags
//	2  u16  data: fragment index; control: length of the datagram
//	4  u32  session, as the receiver numbered it; 0 before there is one
//	8  u64  data: token, or the AEAD counter; hello: the lab's tag; else: sequence
//
// All integers are big-endian, except inside the virtio-net header.
const ProtoVersion = 1

// MsgType is the type of a datagram.
type MsgType uint8

const (
	MsgData MsgType = iota + 1
	MsgHello
	msgChallenge
	msgWelcome
	MsgHeartbeat
	msgProbe
	MsgProbeAck
)

const (
	PrefixLen = 16
	// DataHeaderLen is what a data datagram has before its part of the frame.
	DataHeaderLen = 32
	// SealLen is AES-GCM's tag (NIST SP 800-38D).
	SealLen      = 16
	UDPHeaderLen = 8
	// MinMTU is the smallest path that is served: IPv6 guarantees 1280, tunnels
	// in Pod networks take a little more.
	MinMTU = 1200
	// MaxFrame is the longest frame with its virtio-net header: an IP packet of
	// 65,535 bytes, Ethernet and three tags.
	MaxFrame = 65535 + 14 + 12 + virtio.HeaderLen
)

// FlagVirtio marks a frame that begins with a virtio-net header.
const FlagVirtio = 1

// TypeByte is the first byte of a datagram of type t.
func TypeByte(t MsgType) byte { return ProtoVersion<<4 | byte(t) }

// DataHeader is the head of a data datagram after its first two bytes.
//
//	2  u16  fragment index
//	4  u32  session
//	8  u64  token or counter
//	16 u32  wire
//	20 u32  frame number, per wire and session
//	24 u32  length of the whole frame
//	28 u16  bytes of the frame in each fragment but the last
//	30 u16  zero
type DataHeader struct {
	Flags    uint8
	Index    uint16
	Session  uint32
	Token    uint64
	Wire     uint32
	Frame    uint32
	Length   uint32
	FragSize uint16
}

// Put writes the header over b's first dataHeaderLen bytes.
func (h *DataHeader) Put(b []byte) {
	_ = b[DataHeaderLen-1]
	b[0] = TypeByte(MsgData)
	b[1] = h.Flags
	binary.BigEndian.PutUint16(b[2:], h.Index)
	binary.BigEndian.PutUint32(b[4:], h.Session)
	binary.BigEndian.PutUint64(b[8:], h.Token)
	binary.BigEndian.PutUint32(b[16:], h.Wire)
	binary.BigEndian.PutUint32(b[20:], h.Frame)
	binary.BigEndian.PutUint32(b[24:], h.Length)
	binary.BigEndian.PutUint16(b[28:], h.FragSize)
	binary.BigEndian.PutUint16(b[30:], 0)
}

// Parse reads the header of a datagram that is known to be data. It reports
// whether header and length agree: fragments cannot overlap or leave the frame,
// since every one's place follows from its index.
func (h *DataHeader) Parse(b []byte, overhead int) bool {
	if len(b) < DataHeaderLen+overhead {
		return false
	}
	h.Flags = b[1]
	h.Index = binary.BigEndian.Uint16(b[2:])
	h.Session = binary.BigEndian.Uint32(b[4:])
	h.Token = binary.BigEndian.Uint64(b[8:])
	h.Wire = binary.BigEndian.Uint32(b[16:])
	h.Frame = binary.BigEndian.Uint32(b[20:])
	h.Length = binary.BigEndian.Uint32(b[24:])
	h.FragSize = binary.BigEndian.Uint16(b[28:])
	size := len(b) - DataHeaderLen - overhead
	if h.Length == 0 || h.Length > MaxFrame || h.FragSize == 0 || size == 0 {
		return false
	}
	off := int(h.Index) * int(h.FragSize)
	rest := int(h.Length) - off
	return rest > 0 && size == min(rest, int(h.FragSize))
}

// Fragments returns the number of datagrams of the frame.
func (h *DataHeader) Fragments() int {
	return (int(h.Length) + int(h.FragSize) - 1) / int(h.FragSize)
}

// Whole reports whether the frame fits one datagram.
func (h *DataHeader) Whole() bool { return h.Length <= uint32(h.FragSize) }

// FragmentSize returns how much of a frame fits into one datagram on a path.
func FragmentSize(pathMTU, ipHeader int, aead bool) int {
	n := pathMTU - ipHeader - UDPHeaderLen - DataHeaderLen
	if aead {
		n -= SealLen
	}
	return n
}
