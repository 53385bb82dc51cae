//go:build linux

package udp

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
)

// cut gives the fragments of a frame.
func cut(frame uint32, flags uint8, b []byte, size int) (hs []proto.DataHeader, parts [][]byte) {
	for i := 0; i*size < len(b); i++ {
		hs = append(hs, proto.DataHeader{Flags: flags, Index: uint16(i), Wire: 1, Frame: frame, Length: uint32(len(b)), FragSize: uint16(size)})
		parts = append(parts, b[i*size:min(len(b), (i+1)*size)])
	}
	return hs, parts
}

type collected struct {
	asm     *assembler
	pool    partialPool
	whole   [][]byte
	salvage int
}

func newCollected() *collected {
	c := &collected{}
	c.asm = &assembler{pool: &c.pool}
	c.asm.deliver = func(p *partial) { c.whole = append(c.whole, slices.Clone(p.buf[:p.length])); c.pool.put(p) }
	c.asm.salvage = func(p *partial) { c.salvage++; c.pool.put(p) }
	return c
}

func TestReassembly(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	c := newCollected()
	for n := range 500 {
		b := make([]byte, 1+rng.IntN(9500))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		hs, parts := cut(uint32(n), 0, b, 1200)
		order := rng.Perm(len(hs))
		for _, i := range order {
			if !c.asm.add(&hs[i], parts[i], 0) {
				t.Fatal("a good fragment was refused")
			}
			if c.asm.add(&hs[i], parts[i], 0) {
				t.Fatal("the same fragment was taken twice")
			}
		}
		if len(c.whole) != n+1 || !bytes.Equal(c.whole[n], b) {
			t.Fatalf("frame %d differs", n)
		}
	}
	if c.pool.used != 0 {
		t.Errorf("%d buffers are missing", c.pool.used)
	}
}

// Fragments without end, of ever new frames, of any shape, take no more than the
// bound.
func TestReassemblyBounded(t *testing.T) {
	var pool partialPool
	var wires []*assembler
	for range 100 {
		a := &assembler{pool: &pool}
		a.deliver, a.salvage = pool.put, pool.put
		wires = append(wires, a)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 200_000 {
		h := proto.DataHeader{Index: uint16(rng.IntN(3)), Frame: uint32(i / 2), Length: 60000 + uint32(rng.IntN(5000)), FragSize: uint16(1200 + rng.IntN(5))}
		wires[i%100].add(&h, make([]byte, h.FragSize), time.Duration(i)*time.Millisecond)
		if pool.used > PartialsTotal {
			t.Fatal("over the bound")
		}
	}
	for _, a := range wires {
		a.expire(time.Hour)
	}
	// Of one wire they leave room for the others.
	for i := range 1000 {
		h := proto.DataHeader{Frame: uint32(1<<20 + i), Length: 60000, FragSize: 1200}
		wires[0].add(&h, make([]byte, h.FragSize), 0)
		if pool.used > partialsPerWire {
			t.Fatal("over the bound of a wire")
		}
	}
	wires[0].expire(time.Hour)
	if pool.used != 0 {
		t.Errorf("%d buffers are missing", pool.used)
	}
}

func TestOvertakenFrameIsGivenUp(t *testing.T) {
	c := newCollected()
	hs, parts := cut(1, 0, make([]byte, 3000), 1200)
	c.asm.add(&hs[0], parts[0], 0)
	c.asm.whole(2)
	if c.salvage != 0 {
		t.Error("given up too early: the network may swap two frames")
	}
	c.asm.whole(3)
	if c.salvage != 1 {
		t.Error("it waits on")
	}
}

// superTCP makes a TCP super-frame over IPv4 of n payload bytes, as Linux hands it over:
// behind a virtio-net header for segments of mss bytes, with sequence numbers from 9.
func superTCP(n, mss int) []byte {
	f := []byte{1, 1, 54, 0, byte(mss), byte(mss >> 8), 34, 0, 16, 0}
	f = append(f, make([]byte, 12)...)
	f = append(f, 8, 0, 0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
	f = append(f, 0, 80, 0, 81, 0, 0, 0, 9, 0, 0, 0, 1, 0x50, 0x19, 1, 0, 0, 0, 0, 0)
	for i := range n {
		f = append(f, byte(i*31))
	}
	return f
}

func TestSalvage(t *testing.T) {
	hs, parts := cut(1, proto.FlagVirtio, superTCP(64000, 1448), 1428)
	c := newCollected()
	seen := map[uint32]bool{}
	c.asm.salvage = func(p *partial) {
		salvageSuper(p, func(v virtio.Header, header, payload []byte) {
			frame := append(slices.Clone(header), payload...)
			if err := virtio.Segment(v, frame, func(b []byte) {
				seq, p := binary.BigEndian.Uint32(b[38:]), b[54:]
				for i, x := range p {
					if x != byte((int(seq)-9+i)*31) {
						t.Fatal("wrong bytes")
					}
				}
				seen[(seq-9)/1448] = true
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
	for i := range hs {
		if i != 20 {
			c.asm.add(&hs[i], parts[i], 0)
		}
	}
	c.asm.expire(partialLife)
	if len(seen) < 45-3 || len(seen) >= 45 {
		t.Errorf("%d of 45 segments were saved", len(seen))
	}
}
