package proto

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// The bits of one wire in a heartbeat.
const (
	// BeatUp: the device's end of the sender's leg was up when last observed.
	BeatUp = 1 << iota
	// BeatVXLAN: the sender wants to send by vxlan and is ready to receive by it.
	BeatVXLAN
	// BeatSending: the sender sends by vxlan now.
	BeatSending
	// BeatLocal and BeatLocalSending are the same of local.
	BeatLocal
	BeatLocalSending
)

// beatMaxWires keeps a heartbeat within minMTU.
const beatMaxWires = 256

// beatWire is a wire in a heartbeat.
type beatWire struct {
	id   contract.WireID
	bits uint8
}

// heartbeat shows that the sender is alive, and carries the state of all wires that it
// shares with the receiver. It is one message for all wires of a peer; more than
// beatMaxWires take several parts.
//
//	8  u64  sequence, from 1, never repeated in a session
//	16 u64  sent: nanoseconds of the sender's clock
//	24 u64  echo: sent of the last heartbeat that the sender received
//	32 u32  microseconds between that and this one
//	36 u32  heartbeats that the sender received in this session
//	40 u8   part; 41 u8 parts
//	42 u16  number of wires in this part
//	44      a u32 each: id in the high 24 bits, bits in the low 8
//	   16B  HMAC-SHA256, its first half, over all that is before
type heartbeat struct {
	session     uint32
	seq         uint64
	sent        uint64
	echo        uint64
	echoDelay   uint32
	received    uint32
	part, parts uint8
	wires       []beatWire
}

const beatFixed = 44

var errBeat = errors.New("malformed or forged heartbeat")

func (h *heartbeat) marshal(key []byte) []byte {
	b := make([]byte, beatFixed, beatFixed+4*len(h.wires)+beatMACLen)
	b[0] = TypeByte(MsgHeartbeat)
	binary.BigEndian.PutUint16(b[2:], uint16(cap(b)))
	binary.BigEndian.PutUint32(b[4:], h.session)
	binary.BigEndian.PutUint64(b[8:], h.seq)
	binary.BigEndian.PutUint64(b[16:], h.sent)
	binary.BigEndian.PutUint64(b[24:], h.echo)
	binary.BigEndian.PutUint32(b[32:], h.echoDelay)
	binary.BigEndian.PutUint32(b[36:], h.received)
	b[40], b[41] = h.part, h.parts
	binary.BigEndian.PutUint16(b[42:], uint16(len(h.wires)))
	for _, w := range h.wires {
		b = binary.BigEndian.AppendUint32(b, uint32(w.id)<<8|uint32(w.bits))
	}
	return append(b, sum(key, b)[:beatMACLen]...)
}

func parseHeartbeat(b, key []byte) (*heartbeat, error) {
	if len(b) < beatFixed+beatMACLen || int(binary.BigEndian.Uint16(b[2:])) != len(b) {
		return nil, errBeat
	}
	n := int(binary.BigEndian.Uint16(b[42:]))
	if n > beatMaxWires || len(b) != beatFixed+4*n+beatMACLen || b[40] >= b[41] {
		return nil, errBeat
	}
	if !checkMAC(b, key) {
		return nil, errBeat
	}
	h := &heartbeat{
		session:   binary.BigEndian.Uint32(b[4:]),
		seq:       binary.BigEndian.Uint64(b[8:]),
		sent:      binary.BigEndian.Uint64(b[16:]),
		echo:      binary.BigEndian.Uint64(b[24:]),
		echoDelay: binary.BigEndian.Uint32(b[32:]),
		received:  binary.BigEndian.Uint32(b[36:]),
		part:      b[40],
		parts:     b[41],
		wires:     make([]beatWire, n),
	}
	for i := range h.wires {
		v := binary.BigEndian.Uint32(b[beatFixed+4*i:])
		h.wires[i] = beatWire{id: contract.WireID(v >> 8), bits: uint8(v)}
	}
	return h, nil
}

// probe tests whether a datagram of its size reaches the peer. The answer has the same
// layout and repeats the size.
//
//	8  u64  sequence, of the heartbeats' space
//	16 u16  size: of the probe's IP packet, bytes
//	18      probe: zeros up to the size
//	   16B  HMAC-SHA256, its first half
type probe struct {
	kind    MsgType
	session uint32
	seq     uint64
	size    uint16
}

const probeFixed = 18

// marshal pads a probe to length bytes of UDP payload.
func (p *probe) marshal(key []byte, length int) []byte {
	length = max(length, probeFixed+beatMACLen)
	b := make([]byte, length-beatMACLen, length)
	b[0] = TypeByte(p.kind)
	binary.BigEndian.PutUint16(b[2:], uint16(length))
	binary.BigEndian.PutUint32(b[4:], p.session)
	binary.BigEndian.PutUint64(b[8:], p.seq)
	binary.BigEndian.PutUint16(b[16:], p.size)
	return append(b, sum(key, b)[:beatMACLen]...)
}

func parseProbe(b, key []byte) (*probe, error) {
	if len(b) < probeFixed+beatMACLen || int(binary.BigEndian.Uint16(b[2:])) != len(b) || !checkMAC(b, key) {
		return nil, errBeat
	}
	return &probe{
		kind:    MsgType(b[0] & 0xf),
		session: binary.BigEndian.Uint32(b[4:]),
		seq:     binary.BigEndian.Uint64(b[8:]),
		size:    binary.BigEndian.Uint16(b[16:]),
	}, nil
}

func checkMAC(b, key []byte) bool {
	n := len(b) - beatMACLen
	return hmac.Equal(sum(key, b[:n])[:beatMACLen], b[n:])
}
