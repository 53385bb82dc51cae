//go:build linux

package wire

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

func TestHelloRoundTrip(t *testing.T) {
	keys := deriveLab([]byte("k"), "lab")
	h := &hello{kind: msgWelcome, epoch: 1, attempt: 2, session: 3, nonce: nonce{4}, echo: nonce{5}, caps: 6, wires: 7, digest: 8, lab: "lab", pod: "a", target: "b"}
	got, err := parseHello(h.marshal(keys))
	if err != nil || !reflect.DeepEqual(h, got) {
		t.Errorf("%+v %v", got, err)
	}
	if !authentic(h.marshal(keys), keys) {
		t.Error("the key is rejected")
	}
	if authentic(h.marshal(keys), deriveLab([]byte("other"), "lab")) {
		t.Error("another key is accepted")
	}
}

func TestHeartbeatRoundTrip(t *testing.T) {
	h := &heartbeat{session: 1, seq: 2, sent: 3, echo: 4, echoDelay: 5, received: 6, part: 0, parts: 1, wires: []beatWire{{1, 3}, {0xffffff, 1}}}
	got, err := parseHeartbeat(h.marshal([]byte("k")), []byte("k"))
	if err != nil || !reflect.DeepEqual(h, got) {
		t.Errorf("%+v %v", got, err)
	}
	if n := len((&heartbeat{parts: 1, wires: make([]beatWire, beatMaxWires)}).marshal(nil)); n > minMTU-48 {
		t.Errorf("a full heartbeat has %d bytes", n)
	}
}

func TestWindow(t *testing.T) {
	var w window
	naive := map[uint64]bool{}
	top := uint64(0)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		n := top + uint64(rng.IntN(40))
		if rng.IntN(500) == 0 {
			n += uint64(rng.IntN(5000))
		}
		n -= min(n, uint64(rng.IntN(900)))
		got := w.accept(n)
		if got != !naive[n] {
			t.Fatalf("%d of %d: accepted %v", n, top, got)
		}
		naive[n] = true
		top = max(top, n)
	}
	if w.accept(top - windowSize) {
		t.Error("too old, and accepted")
	}
}

func TestUnwrap(t *testing.T) {
	var w window
	w.accept(w.unwrap(0xfffffff0))
	a, b := w.unwrap(0xffffffff), w.unwrap(5)
	if b != a+6 || w.unwrap(0xffffffe0) != a-0x1f {
		t.Errorf("%x %x", a, b)
	}
}

// frame makes a TCP super-frame of n payload bytes as Linux hands it over.
func superTCP(n, mss int, v6 bool) (vnetHdr, []byte) {
	f := make([]byte, 12, 80+n)
	ip := 20
	v := vnetHdr{flags: vnetNeedsCsum, gsoType: gsoTCPv4, gsoSize: uint16(mss), csumOff: 16}
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

func verifyTCP(t *testing.T, f []byte, v6 bool) (seq uint32, payload []byte) {
	t.Helper()
	l4 := 34
	addrs := f[26:34]
	if v6 {
		l4 = 54
		addrs = f[22:54]
		if int(f[18])<<8|int(f[19]) != len(f)-54 {
			t.Fatal("IPv6 length")
		}
	} else if fold(addSum(0, f[14:34])) != 0xffff || int(f[16])<<8|int(f[17]) != len(f)-14 {
		t.Fatal("IPv4 header")
	}
	if s := fold(addSum(addSum(6+uint64(len(f)-l4), addrs), f[l4:])); s != 0xffff {
		t.Fatalf("TCP checksum %x", s)
	}
	return uint32(f[l4+4])<<24 | uint32(f[l4+5])<<16 | uint32(f[l4+6])<<8 | uint32(f[l4+7]), f[l4+20:]
}

func TestSegment(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, n := range []int{1, 1447, 1448, 1449, 64000} {
			v, f := superTCP(n, 1448, v6)
			want := slices.Clone(f[v.hdrLen:])
			var got []byte
			if err := segment(v, f, func(b []byte) {
				seq, p := verifyTCP(t, b, v6)
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

// cut gives the fragments of a frame.
func cut(frame uint32, flags uint8, b []byte, size int) (hs []dataHeader, parts [][]byte) {
	for i := 0; i*size < len(b); i++ {
		hs = append(hs, dataHeader{flags: flags, index: uint16(i), wire: 1, frame: frame, length: uint32(len(b)), fragSize: uint16(size)})
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
		h := dataHeader{index: uint16(rng.IntN(3)), frame: uint32(i / 2), length: 60000 + uint32(rng.IntN(5000)), fragSize: uint16(1200 + rng.IntN(5))}
		wires[i%100].add(&h, make([]byte, h.fragSize), time.Duration(i)*time.Millisecond)
		if pool.used > partialsTotal {
			t.Fatal("over the bound")
		}
	}
	for _, a := range wires {
		a.expire(time.Hour)
	}
	// Of one wire they leave room for the others.
	for i := range 1000 {
		h := dataHeader{frame: uint32(1<<20 + i), length: 60000, fragSize: 1200}
		wires[0].add(&h, make([]byte, h.fragSize), 0)
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

func TestSalvage(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		v, f := superTCP(64000, 1448, v6)
		b := make([]byte, vnetHdrLen, len(f)+vnetHdrLen)
		v.put(b)
		b = append(b, f...)
		hs, parts := cut(1, flagVnet, b, 1428)
		c := newCollected()
		seen := map[uint32]bool{}
		c.asm.salvage = func(p *partial) {
			salvageSuper(p, func(v vnetHdr, header, payload []byte) {
				frame := append(slices.Clone(header), payload...)
				if err := segment(v, frame, func(b []byte) {
					seq, p := verifyTCP(t, b, v6)
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
			t.Errorf("v6 %v: %d of 45 segments were saved", v6, len(seen))
		}
	}
}

func TestImpairment(t *testing.T) {
	count := func(cfg contract.Impairment) (lost, dup, corrupt, late int, delay time.Duration) {
		m := newImpairer(cfg)
		last := time.Duration(0)
		for i := range 20_000 {
			now := time.Duration(i) * 10 * time.Millisecond
			v := m.decide(now, 1000, 0)
			switch {
			case v.copies == 0:
				lost++
				continue
			case v.copies == 2:
				dup++
			}
			if v.corrupt >= 0 {
				corrupt++
			}
			if v.at < last {
				late++
			}
			last = v.at
			delay += v.at - now
		}
		return lost, dup, corrupt, late, delay / 20_000
	}
	near := func(what string, got, want, by int) {
		t.Helper()
		if got < want-by || got > want+by {
			t.Errorf("%s: %d instead of %d", what, got, want)
		}
	}
	lost, dup, corrupt, _, delay := count(contract.Impairment{Loss: 1, Duplication: 2, Corruption: 5, DelayMS: 50, JitterMS: 10, Seed: 1})
	near("lost", lost, 200, 50)
	near("duplicated", dup, 396, 70)
	near("corrupted", corrupt, 990, 120)
	near("delay, µs", int(delay/time.Microsecond), 50_000, 1500)
	again, _, _, _, _ := count(contract.Impairment{Loss: 1, Duplication: 2, Corruption: 5, DelayMS: 50, JitterMS: 10, Seed: 1})
	if again != lost {
		t.Error("the same seed chose differently")
	}
	_, _, _, late, _ := count(contract.Impairment{Reordering: 10, DelayMS: 50, Seed: 1})
	near("overtaking", late, 1800, 200) // of two in a row one overtakes

	// 8 Mbit/s carry 1,000 bytes in 1 ms.
	m := newImpairer(contract.Impairment{RateKbit: 8000})
	var v verdict
	for range 100 {
		v = m.decide(0, 1000, 0)
	}
	if v.at != 100*time.Millisecond {
		t.Errorf("100 packets take %v", v.at)
	}
	if !m.decide(0, 1000, impairQueue).full {
		t.Error("the queue has no end")
	}
	if impairs(&contract.Impairment{Seed: 4}) || !impairs(&contract.Impairment{Loss: 1}) {
		t.Error("impairs")
	}
}

func TestCarrier(t *testing.T) {
	all := carrier{observed: true, device: true, settled: true, session: true, known: true, listed: true, remote: true}
	for _, tc := range []struct {
		name     string
		edit     func(*carrier)
		up, keep bool
	}{
		{"all is well", func(*carrier) {}, true, false},
		{"far end down", func(c *carrier) { c.remote = false }, false, false},
		{"both down", func(c *carrier) { c.remote, c.device = false, false }, true, false},
		{"peer lost", func(c *carrier) { c.session = false }, false, false},
		{"just started", func(c *carrier) { c.session, c.settled = false, false }, false, true},
		{"session, no state yet", func(c *carrier) { c.known = false }, false, true},
		{"wire unknown there", func(c *carrier) { c.listed = false }, false, false},
	} {
		c := all
		tc.edit(&c)
		if up, keep, _ := c.leg(); up != tc.up || keep != tc.keep {
			t.Errorf("%s: up %v, keep %v", tc.name, up, keep)
		}
	}
}

// Two ends whose devices come and go in any order never wait for each other.
func TestCarrierHasNoDeadlock(t *testing.T) {
	type end struct {
		legUp, seen, dev, device bool // leg's state; observed; last seen; real
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for range 2000 {
		var e [2]end
		step := func(i int) {
			me, far := &e[i], &e[1-i]
			if me.legUp {
				me.seen, me.dev = true, me.device
			}
			c := carrier{observed: me.seen, device: me.dev, settled: true, session: true, known: true, listed: true,
				remote: (carrier{observed: far.seen, device: far.dev}).told()}
			me.legUp, _, _ = c.leg()
		}
		for range rng.IntN(20) {
			e[rng.IntN(2)].device = rng.IntN(2) == 0
			step(rng.IntN(2))
		}
		e[0].device, e[1].device = true, true
		for range 10 {
			step(0)
			step(1)
		}
		if !e[0].legUp || !e[1].legUp {
			t.Fatalf("stuck: %+v", e)
		}
	}
}
