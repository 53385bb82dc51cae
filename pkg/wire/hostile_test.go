//go:build linux

package wire

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// hostile is a stranger on the underlay.
func (l *testLab) hostile() (*testPod, *underlaySocket) {
	p := l.pod("mallory")
	var s *underlaySocket
	var err error
	p.ns.do(func() { s, err = openUnderlay(14800, false) })
	fatal(l.t, err)
	l.t.Cleanup(s.close)
	return p, s
}

// injected tells whether any frame with the EtherType 0x88b5 came to a device.
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
	good := dataHeader{session: p.s.remoteID, token: p.s.tx.token, wire: 1, frame: 1 << 20, length: 60, fragSize: 1400}
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
			d := make([]byte, dataHeaderLen, 1500)
			switch i % 5 {
			case 0: // stolen
			case 1:
				h.session, h.token = rng.Uint32(), rng.Uint64()
			case 2:
				h.frame, h.length, h.index = rng.Uint32(), 60000, uint16(rng.IntN(40))
			case 3:
				h.wire = rng.Uint32()
			}
			h.put(d)
			d = append(d, frame...)
			if i%5 == 4 {
				for j := range d {
					d[j] = byte(rng.Uint32())
				}
				d[0] = typeByte(msgType(rng.IntN(9)))
			}
			sock.send(to, d)
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
		h := dataHeader{session: p.s.remoteID, token: p.s.tx.token, wire: 2, frame: uint32(i), length: 1 + rng.Uint32N(70000), fragSize: uint16(1 + rng.IntN(1400)), flags: uint8(rng.IntN(3))}
		h.index = uint16(rng.IntN(8))
		if i%3 == 0 {
			h.wire, h.length, h.index = 1, 60, 0 // another's
		}
		size := min(int(h.length)-int(h.index)*int(h.fragSize), int(h.fragSize)) + rng.IntN(2)*rng.IntN(2)
		d := make([]byte, dataHeaderLen+max(0, min(size, 1400)))
		h.put(d)
		if i%2 == 0 && len(d) > dataHeaderLen+14 {
			copy(d[dataHeaderLen+12:], "\x88\xb5")
		}
		c.fabric.sock.send(netip.AddrPortFrom(b.addr, 14800), d)
	}
	time.Sleep(200 * time.Millisecond)
	if injected(rx) {
		t.Error("a frame came out of another peer's wire")
	}
	givenBack(t, before, partialsTotal*(64<<10)+(20<<20))
	p2 := a.dev.hasty(t)
	eventually(t, "honest traffic passes", func() bool { _, err := p2.ping("192.168.1.2", 1000, 1); return err == nil })
	eventually(t, "wrong wire ids are counted", func() bool { return b.fabric.Status().Dropped["wire"] > 0 })
}

// Who can send in the peer's name, but has not seen the session's token, injects nothing.
func TestGuessedToken(t *testing.T) {
	_, a, b := two(t, 1500, 1500, false, nil, nil)
	rx := b.dev.raw(t, "eth1")
	p := pathOf(t, a, 1)
	before := b.fabric.Status().Dropped["token"]
	for n := range uint64(50) {
		h := dataHeader{session: p.s.remoteID, token: p.s.tx.token + 1 + n, wire: 1, frame: a.fabric.wires[1].frameNo.Add(1), length: 60, fragSize: 1400}
		d := make([]byte, dataHeaderLen+60)
		h.put(d)
		copy(d[dataHeaderLen:], "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x09\x88\xb5")
		a.fabric.sock.send(netip.AddrPortFrom(b.addr, 14800), d)
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
	h := dataHeader{session: p.s.remoteID, token: p.s.tx.token, wire: 1, frame: a.fabric.wires[1].frameNo.Add(1), length: 60, fragSize: 1400}
	d := make([]byte, dataHeaderLen+60)
	h.put(d)
	copy(d[dataHeaderLen:], "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x09\x88\xb5")
	for range 100 {
		a.fabric.sock.send(netip.AddrPortFrom(b.addr, 14800), d)
	}
	if !receiveFrame(rx, d[dataHeaderLen:], 10*time.Second, nil) {
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
	inject := func(from *testPod, vni byte) {
		from.ns.do(func() {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			fatal(t, err)
			defer unix.Close(fd)
			fatal(t, unix.Sendto(fd, append([]byte{8, 0, 0, 0, 0, 0, vni, 0}, frame...), 0, &unix.SockaddrInet4{Port: contract.VXLANPort, Addr: b.addr.As4()}))
		})
	}
	inject(mallory, 1)
	inject(a, 2)
	time.Sleep(100 * time.Millisecond)
	if injected(rx) {
		t.Error("a frame was injected")
	}
	for n := 1; ; n++ {
		inject(a, 1)
		if receiveFrame(rx, frame, 10*time.Second, nil) {
			break
		}
		if n == 3 {
			t.Fatal("the peer's own frame did not come, so the test shows nothing")
		}
	}
}

// pathOf waits until a wire's frames go to the peer by one and the same session for a
// while: where both ends greet at once, the first session is soon followed by another.
func pathOf(t testing.TB, p *testPod, id contract.WireID) (path *txPath) {
	t.Helper()
	var before *session
	var since time.Time
	eventually(t, "a session that stays", func() bool {
		if path = p.fabric.wires[id].path.Load(); path == nil || path.s != before {
			before, since = nil, time.Now()
			if path != nil {
				before = path.s
			}
			return false
		}
		return time.Since(since) > 500*time.Millisecond
	})
	return path
}
