//go:build linux

package udp

import (
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
)

// FuzzReassembly gives an assembler any fragments, and what comes out to the
// functions behind it.
func FuzzReassembly(f *testing.F) {
	f.Add([]byte("0123456789012345678901234567890123456789"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var pool partialPool
		a := &assembler{pool: &pool}
		end := func(p *partial) {
			salvageSuper(p, func(v virtio.Header, header, payload []byte) {
				virtio.Segment(v, append(append([]byte(nil), header...), payload...), func([]byte) {})
			})
			pool.put(p)
		}
		a.deliver, a.salvage = end, end
		for len(b) > 8 {
			n := min(len(b), int(b[0])%64+8)
			d := make([]byte, proto.DataHeaderLen, 2048)
			h := proto.DataHeader{Flags: b[1], Index: uint16(b[2] % 8), Frame: uint32(b[3] % 8), Length: uint32(b[4])<<3 + 1, FragSize: uint16(b[5]) + 1}
			h.Put(d)
			want := min(int(h.Length)-int(h.Index)*int(h.FragSize), int(h.FragSize))
			for i := range max(0, want) {
				d = append(d, b[6+i%(n-6)])
			}
			var got proto.DataHeader
			if got.Parse(d, 0) {
				a.add(&got, d[proto.DataHeaderLen:], time.Duration(b[7])*time.Millisecond)
			}
			b = b[n:]
		}
		a.expire(time.Hour)
		if pool.used != 0 {
			t.Errorf("%d buffers are missing", pool.used)
		}
	})
}
