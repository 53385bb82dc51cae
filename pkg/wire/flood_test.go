//go:build linux

package wire

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestGarbageFlood measures honest TCP beside 100,000 datagrams of garbage a
// second, in turn with and without. WIRE_SECONDS is for one measurement.
func TestGarbageFlood(t *testing.T) {
	l, a, b := two(t, 1500, 1500, false, nil, nil)
	_, sock := l.hostile()
	d := seconds("WIRE_SECONDS", 0.5)
	var clean, flooded, perSecond []float64
	before := heapInUse()
	for range 3 {
		clean = append(clean, tcpRate(t, a.dev, b.dev, d))
		stop, sent := l.flood(sock, b, 100_000)
		begin := time.Now()
		flooded = append(flooded, tcpRate(t, a.dev, b.dev, d))
		perSecond = append(perSecond, float64(sent.Load())/time.Since(begin).Seconds())
		stop()
	}
	ratio := median(flooded) / median(clean)
	t.Logf("TCP %.1f Gbit/s, beside %.0f datagrams/s of garbage %.1f: %.2f; dropped %v", median(clean), median(perSecond), median(flooded), ratio, b.fabric.Status().Dropped)
	if !b.status(1).Up {
		t.Error("the wire is down")
	}
	if grown := int64(heapInUse()) - int64(before); grown > 8<<20 {
		t.Errorf("the heap grew by %d", grown)
	}
	// Half is the aim, and a figure of a quiet machine: the sender of the garbage
	// takes its share of the processors too. What holds anywhere is that honest
	// traffic goes on and the garbage is dropped.
	if median(flooded) == 0 {
		t.Error("honest traffic stands still")
	}
	if b.fabric.Status().Dropped["kernel"] == 0 {
		t.Error("no garbage was dropped")
	}
}

// flood sends garbage at a rate, from one address: all types, random sessions
// and tokens, and what is right but for the session.
func (l *testLab) flood(sock *underlaySocket, to *testPod, rate int) (stop func(), sent *atomic.Int64) {
	sent = &atomic.Int64{}
	var end atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		rng := rand.New(rand.NewPCG(3, 3))
		var garbage [256][100]byte
		for i := range garbage {
			g := garbage[i][:]
			for j := range g {
				g[j] = byte(rng.Uint32())
			}
			g[0] = typeByte(msgType(rng.IntN(9)))
			if i%4 == 0 {
				(&dataHeader{session: rng.Uint32(), token: rng.Uint64(), wire: 1, length: 68, fragSize: 1400}).put(g)
			}
			if i%16 == 1 {
				binary.BigEndian.PutUint64(g[8:], deriveLab([]byte("another"), "lab").tag)
			}
		}
		raw := toRaw(netip.AddrPortFrom(to.addr, 14800))
		tx := &txBatch{fd: sock.fd, failed: func(int, unix.Errno) {}}
		for begin, n := time.Now(), 0; !end.Load(); {
			for !end.Load() && n < int(time.Since(begin).Seconds()*float64(rate)) {
				for range txMsgs {
					tx.start()
					tx.piece(garbage[n%len(garbage)][:])
					tx.to(&raw)
					n++
				}
				tx.flush()
				sent.Store(int64(n))
			}
			time.Sleep(500 * time.Microsecond)
		}
	})
	return func() { end.Store(true); group.Wait() }, sent
}
