//go:build linux

package virtio

import (
	"testing"
)

func FuzzSegment(f *testing.F) {
	v, b := SuperTCP(3000, 1448, false)
	h := make([]byte, HeaderLen)
	v.Put(h)
	f.Add(append(h, b...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < HeaderLen {
			return
		}
		var v Header
		v.Parse(b)
		n := 0
		Segment(v, append([]byte(nil), b[HeaderLen:]...), func(p []byte) { n += len(p) })
	})
}
