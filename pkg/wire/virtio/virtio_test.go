//go:build linux

package virtio

import (
	"bytes"
	"slices"
	"testing"
)

// frame makes a TCP super-frame of n payload bytes as Linux hands it over.
func SuperTCP(n, mss int, v6 bool) (Header, []byte) {
	f := make([]byte, 12, 80+n)
	ip := 20
	v := Header{flags: needsChecksum, gsoType: gsoTCPv4, gsoSize: uint16(mss), csumOff: 16}
	if v6 {
		f = append(f, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 6, 64)
		f = append(f, bytes.Repeat([]byte{0xfd}, 32)...)
		ip, v.gsoType = 40, gsoTCPv6
	} else {
		f = append(f, 8, 0, 0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
	}
	v.csumStart, v.hdrLen = uint16(14+ip), uint16(14+ip+20)
	f = append(f, 0, 80, 0, 81, 0, 0, 0, 9, 0, 0, 0, 1, 0x50, 0x19, 1, 0, 0, 0, 0, 0) // PSH FIN ACK
	for i := range n {
		f = append(f, byte(i*31))
	}
	return v, f
}

func VerifyTCP(t *testing.T, f []byte, v6 bool) (seq uint32, payload []byte) {
	t.Helper()
	l4 := 34
	addrs := f[26:34]
	if v6 {
		l4 = 54
		addrs = f[22:54]
		if int(f[18])<<8|int(f[19]) != len(f)-54 {
			t.Fatal("IPv6 length")
		}
	} else if Fold(AddSum(0, f[14:34])) != 0xffff || int(f[16])<<8|int(f[17]) != len(f)-14 {
		t.Fatal("IPv4 header")
	}
	if s := Fold(AddSum(AddSum(6+uint64(len(f)-l4), addrs), f[l4:])); s != 0xffff {
		t.Fatalf("TCP checksum %x", s)
	}
	return uint32(f[l4+4])<<24 | uint32(f[l4+5])<<16 | uint32(f[l4+6])<<8 | uint32(f[l4+7]), f[l4+20:]
}

func TestSegment(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, n := range []int{1, 1447, 1448, 1449, 64000} {
			v, f := SuperTCP(n, 1448, v6)
			want := slices.Clone(f[v.hdrLen:])
			var got []byte
			if err := Segment(v, f, func(b []byte) {
				seq, p := VerifyTCP(t, b, v6)
				if int(seq) != 9+len(got) || len(p) > 1448 {
					t.Fatalf("sequence %d at %d", seq, len(got))
				}
				got = append(got, p...)
			}); err != nil || !bytes.Equal(got, want) {
				t.Errorf("v6 %v, %d bytes: %v", v6, n, err)
			}
		}
	}
}
