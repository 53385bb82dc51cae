//go:build linux

package wire

import (
	"bytes"
	"testing"
	"time"
)

func FuzzHello(f *testing.F) {
	keys := deriveLab(nil, "lab")
	f.Add((&hello{kind: msgHello, lab: "lab", pod: "a", target: "b"}).marshal(keys))
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
		if end := len(b) - helloMACLen; !bytes.Equal(h.marshal(keys)[prefixLen:end], b[prefixLen:end]) {
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
	f.Add(make([]byte, 200), uint8(msgHeartbeat))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		w := newWorld(&testing.T{})
		a, c := w.node("a", "b", "", addr(1), 100), w.node("b", "a", "", addr(2), 200)
		know(a, "b", addr(2))
		know(c, "a", addr(1))
		w.run(100 * time.Millisecond)
		s := a.peers["b"].cur
		if s == nil || len(b) < prefixLen {
			return
		}
		b[0] = typeByte(msgType(kind))
		b[2], b[3] = byte(len(b)>>8), byte(len(b))
		switch t := msgType(kind & 0xf); {
		case t >= msgHello && t <= msgWelcome:
			for i := range 8 {
				b[8+i] = byte(a.keys.tag >> (56 - 8*i))
			}
			if len(b) > helloMACLen+prefixLen {
				copy(b[len(b)-helloMACLen:], sum(a.keys.hello, b[:len(b)-helloMACLen]))
			}
		case len(b) > beatMACLen+prefixLen:
			for i := range 4 {
				b[4+i] = byte(s.id >> (24 - 8*i))
			}
			copy(b[len(b)-beatMACLen:], sum(s.rx.mac, b[:len(b)-beatMACLen])[:beatMACLen])
		}
		a.receive(addr(2), b)
		w.run(20 * time.Millisecond)
	})
}

// FuzzReassembly gives an assembler any fragments, and what comes out to the
// functions behind it.
func FuzzReassembly(f *testing.F) {
	f.Add([]byte("0123456789012345678901234567890123456789"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var pool partialPool
		a := &assembler{pool: &pool}
		end := func(p *partial) {
			salvageSuper(p, func(v vnetHdr, header, payload []byte) {
				segment(v, append(append([]byte(nil), header...), payload...), func([]byte) {})
			})
			pool.put(p)
		}
		a.deliver, a.salvage = end, end
		for len(b) > 8 {
			n := min(len(b), int(b[0])%64+8)
			d := make([]byte, dataHeaderLen, 2048)
			h := dataHeader{flags: b[1], index: uint16(b[2] % 8), frame: uint32(b[3] % 8), length: uint32(b[4])<<3 + 1, fragSize: uint16(b[5]) + 1}
			h.put(d)
			want := min(int(h.length)-int(h.index)*int(h.fragSize), int(h.fragSize))
			for i := range max(0, want) {
				d = append(d, b[6+i%(n-6)])
			}
			var got dataHeader
			if got.parse(d, 0) {
				a.add(&got, d[dataHeaderLen:], time.Duration(b[7])*time.Millisecond)
			}
			b = b[n:]
		}
		a.expire(time.Hour)
		if pool.used != 0 {
			t.Errorf("%d buffers are missing", pool.used)
		}
	})
}

func FuzzDataHeader(f *testing.F) {
	f.Add(make([]byte, 64), false)
	f.Fuzz(func(t *testing.T, b []byte, aead bool) {
		overhead := 0
		if aead {
			overhead = aeadTagLen
		}
		var h dataHeader
		if !h.parse(b, overhead) {
			return
		}
		if off := int(h.index) * int(h.fragSize); off+len(b)-dataHeaderLen-overhead > int(h.length) || int(h.index) >= h.fragments() {
			t.Errorf("%+v leaves the frame", h)
		}
	})
}

func FuzzSegment(f *testing.F) {
	v, b := superTCP(3000, 1448, false)
	h := make([]byte, vnetHdrLen)
	v.put(h)
	f.Add(append(h, b...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < vnetHdrLen {
			return
		}
		var v vnetHdr
		v.parse(b)
		n := 0
		segment(v, append([]byte(nil), b[vnetHdrLen:]...), func(p []byte) { n += len(p) })
	})
}
