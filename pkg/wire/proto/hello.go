package proto

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"
)

// Capabilities in a hello.
const (
	// CapEncrypt: this end sends data sealed and takes only sealed data.
	CapEncrypt uint32 = 1
)

// hello is the message of the three handshake types. All three have one length
// for one pair of Pods, so an answer is never longer than what asked for it.
//
//	16 u64  epoch of the sender's process, greater than that of the one before it
//	        in its Pod; nanoseconds of the clock at its start, or more
//	24 u32  attempt, counting the handshakes that the sender began
//	28 u32  session, as the sender will number it
//	32 16B  nonce of the sender
//	48 16B  hello: cookie, zero at first; challenge: the cookie; welcome: the
//	        nonce of the hello that it answers
//	64 u32  capabilities
//	68 u32  number of wires that the sender has with the receiver
//	72 u64  digest of their ids
//	80      three strings, each a length byte and its bytes: lab, sender's Pod,
//	        receiver's Pod
//	   32B  HMAC-SHA256 over all that is before
type hello struct {
	kind    MsgType
	epoch   uint64
	attempt uint32
	session uint32
	nonce   nonce
	echo    nonce
	caps    uint32
	wires   uint32
	digest  uint64
	lab     string
	pod     string
	target  string
}

const helloFixed = 80

var errHelloShape = errors.New("malformed hello")

// marshal writes the message with its MAC.
func (h *hello) marshal(keys Keys) []byte {
	size := helloFixed + 3 + len(h.lab) + len(h.pod) + len(h.target) + helloMACLen
	b := make([]byte, helloFixed, size)
	b[0] = TypeByte(h.kind)
	binary.BigEndian.PutUint16(b[2:], uint16(size))
	binary.BigEndian.PutUint64(b[8:], keys.Tag)
	binary.BigEndian.PutUint64(b[16:], h.epoch)
	binary.BigEndian.PutUint32(b[24:], h.attempt)
	binary.BigEndian.PutUint32(b[28:], h.session)
	copy(b[32:], h.nonce[:])
	copy(b[48:], h.echo[:])
	binary.BigEndian.PutUint32(b[64:], h.caps)
	binary.BigEndian.PutUint32(b[68:], h.wires)
	binary.BigEndian.PutUint64(b[72:], h.digest)
	for _, s := range []string{h.lab, h.pod, h.target} {
		b = append(b, byte(len(s)))
		b = append(b, s...)
	}
	return append(b, sum(keys.hello, b)...)
}

// parseHello reads a hello, challenge or welcome. Its MAC is not checked yet.
func parseHello(b []byte) (*hello, error) {
	if !wellSized(b) {
		return nil, errHelloShape
	}
	body := b[:len(b)-helloMACLen]
	h := &hello{
		kind:    MsgType(b[0] & 0xf),
		epoch:   binary.BigEndian.Uint64(b[16:]),
		attempt: binary.BigEndian.Uint32(b[24:]),
		session: binary.BigEndian.Uint32(b[28:]),
		nonce:   nonce(b[32:48]),
		echo:    nonce(b[48:64]),
		caps:    binary.BigEndian.Uint32(b[64:]),
		wires:   binary.BigEndian.Uint32(b[68:]),
		digest:  binary.BigEndian.Uint64(b[72:]),
	}
	rest := body[helloFixed:]
	for _, s := range []*string{&h.lab, &h.pod, &h.target} {
		if len(rest) < 1 || len(rest) < 1+int(rest[0]) {
			return nil, errHelloShape
		}
		*s = string(rest[1 : 1+int(rest[0])])
		rest = rest[1+int(rest[0]):]
	}
	if len(rest) != 0 || h.pod == "" {
		return nil, errHelloShape
	}
	return h, nil
}

// wellSized reports whether a message is long enough for a hello, and as long as its
// header says.
func wellSized(b []byte) bool {
	return len(b) >= helloFixed+3+helloMACLen && int(binary.BigEndian.Uint16(b[2:])) == len(b)
}

// authentic reports whether the MAC of a message that parseHello accepts is correct.
func authentic(b []byte, keys Keys) bool {
	n := len(b) - helloMACLen
	return hmac.Equal(sum(keys.hello, b[:n]), b[n:])
}

// identity returns what the session's keys are bound to.
func (h *hello) identity() []byte {
	b := make([]byte, 0, 64)
	b = binary.BigEndian.AppendUint64(b, h.epoch)
	b = binary.BigEndian.AppendUint32(b, h.session)
	b = append(b, h.nonce[:]...)
	b = binary.BigEndian.AppendUint32(b, h.caps)
	b = append(b, byte(len(h.pod)))
	return append(b, h.pod...)
}
