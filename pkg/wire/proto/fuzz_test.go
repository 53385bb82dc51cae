//go:build linux

package proto

import (
	"bytes"
	"testing"
	"time"
)

func FuzzHello(f *testing.F) {
	keys := DeriveKeys(nil, "lab")
	f.Add((&hello{kind: MsgHello, lab: "lab", pod: "a", target: "b"}).marshal(keys))
	f.Fuzz(func(t *testing.T, b []byte) {
		// A right MAC, so that the parser is reached.
		if len(b) >= helloMACLen {
			copy(b[len(b)-helloMACLen:], sum(keys.hello, b[:len(b)-helloMACLen]))
		}
		h, err := parseHello(b)
		if err != nil {
			return
		}
		if h.pod == "" {
			t.Error("a hello of nobody")
		}
		if !authentic(b, keys) {
			t.Error("a right MAC is rejected")
		}
		if end := len(b) - helloMACLen; !bytes.Equal(h.marshal(keys)[PrefixLen:end], b[PrefixLen:end]) {
			t.Error("what was read is not what is written")
		}
	})
}

func FuzzHeartbeat(f *testing.F) {
	f.Add((&heartbeat{parts: 1, wires: []beatWire{{1, 1}}}).marshal(nil))
	f.Add((&probe{kind: msgProbe, size: 1500}).marshal(nil, 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= beatMACLen {
			copy(b[len(b)-beatMACLen:], sum(nil, b[:len(b)-beatMACLen]))
		}
		if h, err := parseHeartbeat(b, nil); err == nil && len(h.wires) > beatMaxWires {
			t.Error("too many wires")
		}
		parseProbe(b, nil)
	})
}

// FuzzEngine gives an engine with a session any datagram, with the right tag,
// session and MAC where there is room for them.
func FuzzEngine(f *testing.F) {
	f.Add([]byte{0x12}, uint8(0))
	f.Add(make([]byte, 200), uint8(MsgHeartbeat))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		w := newWorld(&testing.T{})
		a, c := w.node("a", "b", "", addr(1), 100), w.node("b", "a", "", addr(2), 200)
		know(a, "b", addr(2))
		know(c, "a", addr(1))
		w.run(100 * time.Millisecond)
		s := a.Peers["b"].Cur
		if s == nil || len(b) < PrefixLen {
			return
		}
		b[0] = TypeByte(MsgType(kind))
		b[2], b[3] = byte(len(b)>>8), byte(len(b))
		switch t := MsgType(kind & 0xf); {
		case t >= MsgHello && t <= msgWelcome:
			for i := range 8 {
				b[8+i] = byte(a.Keys.Tag >> (56 - 8*i))
			}
			if len(b) > helloMACLen+PrefixLen {
				copy(b[len(b)-helloMACLen:], sum(a.Keys.hello, b[:len(b)-helloMACLen]))
			}
		case len(b) > beatMACLen+PrefixLen:
			for i := range 4 {
				b[4+i] = byte(s.ID >> (24 - 8*i))
			}
			copy(b[len(b)-beatMACLen:], sum(s.RX.mac, b[:len(b)-beatMACLen])[:beatMACLen])
		}
		a.Receive(addr(2), b)
		w.run(20 * time.Millisecond)
	})
}

func FuzzDataHeader(f *testing.F) {
	f.Add(make([]byte, 64), false)
	f.Fuzz(func(t *testing.T, b []byte, aead bool) {
		overhead := 0
		if aead {
			overhead = SealLen
		}
		var h DataHeader
		if !h.Parse(b, overhead) {
			return
		}
		if off := int(h.Index) * int(h.FragSize); off+len(b)-DataHeaderLen-overhead > int(h.Length) || int(h.Index) >= h.Fragments() {
			t.Errorf("%+v leaves the frame", h)
		}
	})
}
