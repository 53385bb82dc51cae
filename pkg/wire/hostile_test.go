//go:build linux

package wire

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/c9s-lab/c9s/pkg/wire/udp"
	"golang.org/x/sys/unix"
)

// hostile is a stranger on the underlay.
func (l *testLab) hostile() (*testPod, *udp.Socket) {
	p := l.pod("mallory")
	var s *udp.Socket
	var err error
	p.ns.do(func() { s, err = udp.OpenSocket(14800, false) })
	fatal(l.t, err)
	l.t.Cleanup(s.Close)
	return p, s
}

// injected reports whether any frame with the EtherType 0x88b5 came to a device.
func injected(fd int) bool {
	buf := make([]byte, 70000)
	unix.SetNonblock(fd, true)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return false
		}
		if n >= 14 && buf[12] == 0x88 && buf[13] == 0xb5 {
			return true
		}
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // also what the first one only marked
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// givenBack waits until the heap is no larger than it was, but for a remainder.
func givenBack(t testing.TB, before uint64, remainder int64) {
	t.Helper()
	var grown int64
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(50 * time.Millisecond) {
		if grown = int64(heapInUse()) - int64(before); grown <= remainder {
			return
		}
	}
	t.Errorf("the heap grew by %d", grown)
}

func TestHostileStranger(t *testing.T) {
	l, a, b := two(t, 1500, 1500, false, nil, nil)
	_, sock := l.hostile()
	rx := b.dev.raw(t, "eth1")
	to := netip.AddrPortFrom(b.addr, 14800)
	// It saw everything but cannot use b's address: the session and the token are
	// right.
	p := pathOf(t, a, 1)
	good := proto.DataHeader{Session: p.Session.RemoteID, Token: p.Session.TX.Token, Wire: 1, Frame: 1 << 20, Length: 60, FragSize: 1400}
	frame := make([]byte, 60)
	copy(frame, "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x09\x88\xb5")
	before := heapInUse()
	rng := rand.New(rand.NewPCG(1, 1))
	var stop atomic.Bool
	var sent atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; !stop.Load(); i++ {
			h := good
			d := make([]byte, proto.DataHeaderLen, 1500)
			switch i % 5 {
			case 0: // stolen
			case 1:
				h.Session, h.Token = rng.Uint32(), rng.Uint64()
			case 2:
				h.Frame, h.Length, h.Index = rng.Uint32(), 60000, uint16(rng.IntN(40))
			case 3:
				h.Wire = rng.Uint32()
			}
			h.Put(d)
			d = append(d, frame...)
			if i%5 == 4 {
				for j := range d {
					d[j] = byte(rng.Uint32())
				}
				d[0] = proto.TypeByte(proto.MsgType(rng.IntN(9)))
			}
			sock.Send(to, d)
			if sent.Add(1)%200 == 0 {
				time.Sleep(time.Millisecond) // others are to run too
			}
		}
	})
	ping := a.dev.hasty(t)
	answered, asked := 0, 0
	start := time.Now()
	// Two seconds of it, and as long as that number of answers takes.
	for since := start; (answered < 20 || time.Since(start) < 2*time.Second) && time.Since(since) < patience; asked++ {
		if _, err := ping.ping("192.168.1.2", 1000, uint16(asked)); err == nil {
			answered++
		}
		time.Sleep(10 * time.Millisecond)
	}
	err := transfer(t, a.dev, b.dev, "192.168.1.2", 16<<20)
	stop.Store(true)
	wg.Wait()
	if err != nil {
		t.Error(err)
	}
	if injected(rx) {
		t.Error("a frame was injected")
	}
	rate := float64(sent.Load()) / time.Since(start).Seconds()
	givenBack(t, before, 8<<20)
	if answered < 20 {
		t.Errorf("honest traffic suffered: %d of %d echoes, %+v", answered, asked, b.status(1))
	}
	eventually(t, "the wire is up", func() bool { return b.status(1).Up })
	t.Logf("%.0f datagrams/s of garbage; %d of %d echoes; dropped %v", rate, answered, asked, b.fabric.Status().Dropped)
}

// A peer that is in the lab, with a session, but sends what it likes.
func TestHostilePeer(t *testing.T) {
	l, a, b := two(t, 1500, 1500, false, nil, nil)
	c := l.pod("c")
	l.wire(2, b, c, 1500, nil)
	fatal(t, b.fabric.Set(b.wires))
	c.start()
	waitUp(t, 2, b, c)
	rx := b.dev.raw(t, "eth1")
	p := pathOf(t, c, 2)
	before := heapInUse()
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range 60_000 {
		h := proto.DataHeader{Session: p.Session.RemoteID, Token: p.Session.TX.Token, Wire: 2, Frame: uint32(i), Length: 1 + rng.Uint32N(70000), FragSize: uint16(1 + rng.IntN(1400)), Flags: uint8(rng.IntN(3))}
		h.Index = uint16(rng.IntN(8))
		if i%3 == 0 {
			h.Wire, h.Length, h.Index = 1, 60, 0 // another's
		}
		size := min(int(h.Length)-int(h.Index)*int(h.FragSize), int(h.FragSize)) + rng.IntN(2)*rng.IntN(2)
		d := make([]byte, proto.DataHeaderLen+max(0, min(size, 1400)))
		h.Put(d)
		if i%2 == 0 && len(d) > proto.DataHeaderLen+14 {
			copy(d[proto.DataHeaderLen+12:], "\x88\xb5")
		}
		c.fabric.udp.Sock.Send(netip.AddrPortFrom(b.addr, 14800), d)
	}
	// It is read from the same socket after them.
	p2 := a.dev.hasty(t)
	eventually(t, "honest traffic passes", func() bool { _, err := p2.ping("192.168.1.2", 1000, 1); return err == nil })
	if injected(rx) {
		t.Error("a frame came out of another peer's wire")
	}
	givenBack(t, before, udp.PartialsTotal*(64<<10)+(20<<20))
	eventually(t, "wrong wire ids are counted", func() bool { return b.fabric.Status().Dropped["wire"] > 0 })
}

// Who can send in the peer's name, but has not seen the session's token, injects nothing.
func TestGuessedToken(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	rx := b.dev.raw(t, "eth1")
	p := pathOf(t, a, 1)
	before := b.fabric.Status().Dropped["token"]
	for n := range uint64(50) {
		h := proto.DataHeader{Session: p.Session.RemoteID, Token: p.Session.TX.Token + 1 + n, Wire: 1, Frame: a.fabric.wires[1].udp.FrameNo.Add(1), Length: 60, FragSize: 1400}
		d := make([]byte, proto.DataHeaderLen+60)
		h.Put(d)
		copy(d[proto.DataHeaderLen:], "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x09\x88\xb5")
		a.fabric.udp.Sock.Send(netip.AddrPortFrom(b.addr, 14800), d)
	}
	eventually(t, "they are counted", func() bool { return b.fabric.Status().Dropped["token"] == before+50 })
	if injected(rx) {
		t.Error("a frame was injected")
	}
}

// Recorded datagrams, sent again from the right address, deliver nothing twice.
func TestReplayedFrames(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	rx := b.dev.raw(t, "eth1")
	p := pathOf(t, a, 1)
	h := proto.DataHeader{Session: p.Session.RemoteID, Token: p.Session.TX.Token, Wire: 1, Frame: a.fabric.wires[1].udp.FrameNo.Add(1), Length: 60, FragSize: 1400}
	d := make([]byte, proto.DataHeaderLen+60)
	h.Put(d)
	copy(d[proto.DataHeaderLen:], "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x09\x88\xb5")
	for range 100 {
		a.fabric.udp.Sock.Send(netip.AddrPortFrom(b.addr, 14800), d)
	}
	if !receiveFrame(rx, d[proto.DataHeaderLen:], 10*time.Second, nil) {
		t.Error("the first one did not come")
	}
	eventually(t, "the others count as duplicates", func() bool { return b.status(1).Drops["duplicate"] == 99 })
	if injected(rx) {
		t.Error("a replayed one came")
	}
}

// The vxlan datapath takes frames from the far end of the wire alone.
func TestVXLANStranger(t *testing.T) {
	l, a, b := two(t, 1500, 1400, false, nil, func(w *Wire) { w.Datapath = DatapathVXLAN })
	eventually(t, "both send by vxlan", func() bool {
		s := b.status(1)
		return s.Datapath == DatapathVXLAN && s.RemoteDatapath == DatapathVXLAN
	})
	mallory, _ := l.hostile()
	rx := b.dev.raw(t, "eth1")
	frame := make([]byte, 60)
	copy(frame, "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x09\x88\xb5")
	bad := append([]byte(nil), frame...)
	bad[59] = 1
	inject := func(from *testPod, vni byte, frame []byte) {
		from.ns.do(func() {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			fatal(t, err)
			defer unix.Close(fd)
			fatal(t, unix.Sendto(fd, append([]byte{8, 0, 0, 0, 0, 0, vni, 0}, frame...), 0, &unix.SockaddrInet4{Port: contract.VXLANPort, Addr: b.addr.As4()}))
		})
	}
	inject(mallory, 1, bad)
	inject(a, 2, bad)
	for n := 1; ; n++ {
		inject(a, 1, frame)
		if receiveFrame(rx, frame, 10*time.Second, func(f []byte) {
			if bytes.Equal(f, bad) {
				t.Error("a frame was injected")
			}
		}) {
			break
		}
		if n == 3 {
			t.Fatal("the peer's own frame did not come, so the test shows nothing")
		}
	}
}

// pathOf waits until a wire's frames go to the peer by one and the same session for a
// while: where both ends greet at once, the first session is soon followed by another.
func pathOf(t testing.TB, p *testPod, id contract.WireID) (path *udp.Route) {
	t.Helper()
	var before *proto.Session
	var since time.Time
	eventually(t, "a session that stays", func() bool {
		if path = p.fabric.wires[id].udp.Path.Load(); path == nil || path.Session != before {
			before, since = nil, time.Now()
			if path != nil {
				before = path.Session
			}
			return false
		}
		return time.Since(since) > 500*time.Millisecond
	})
	return path
}
