package virtio

import (
	"math/rand/v2"
	"testing"
)

// plainSum is the sum of RFC 1071, word by word, modulo 0xffff.
func plainSum(sum uint64, b []byte) uint64 {
	sum %= 0xffff
	for i, c := range b {
		if i%2 == 0 {
			sum += uint64(c) << 8
		} else {
			sum += uint64(c)
		}
	}
	return sum % 0xffff
}

func TestAddSum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := make([]byte, random.IntN(300))
		for i := range b {
			if b[i] = byte(random.Uint32()); random.IntN(3) == 0 {
				b[i] = 0xff // carries
			}
		}
		first := random.Uint64()
		want := plainSum(first, b)
		if got := Fold(AddSum(first, b)); uint64(got)%0xffff != want {
			t.Fatalf("% x and %x: %04x, want %04x", b, first, got, want)
		}
	}
	full := make([]byte, 64)
	for i := range full {
		full[i] = 0xff
	}
	if got := Fold(AddSum(1<<64-1, full)); got != 0xffff {
		t.Errorf("all ones: %04x", got)
	}
}

func BenchmarkAddSum(b *testing.B) {
	data := make([]byte, 1448)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		AddSum(0, data)
	}
}
