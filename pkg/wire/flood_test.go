//go:build linux

package wire

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/proto"
	"github.com/c9s-lab/c9s/pkg/wire/udp"
	"golang.org/x/sys/unix"
)

// TestGarbageFlood measures honest TCP beside 100,000 datagrams of garbage a
// second, in turn with and without, and with the same garbage sent to a port that
// nobody has: what that takes is the sender's share and the kernel's. WIRE_SECONDS
// is for one measurement, and has the figures judged; without it only the wire is.
func TestGarbageFlood(t *testing.T) {
	l, a, b := two(t, 1500, 1500, false, nil, nil)
	_, sock := l.hostile()
	d := seconds("WIRE_SECONDS", 0.5)
	var clean, flooded, elsewhere, perSecond []float64
	before := heapInUse()
	beside := func(port uint16) float64 {
		stop, sent := l.flood(sock, netip.AddrPortFrom(b.addr, port), 100_000)
		defer stop()
		begin := time.Now()
		rate := tcpRate(t, a.dev, b.dev, d)
		perSecond = append(perSecond, float64(sent.Load())/time.Since(begin).Seconds())
		return rate
	}
	for range 3 {
		clean = append(clean, tcpRate(t, a.dev, b.dev, d))
		flooded = append(flooded, beside(14800))
		elsewhere = append(elsewhere, beside(9))
	}
	t.Logf("TCP %.1f Gbit/s; beside %.0f datagrams/s of garbage %.1f: %.2f; beside as many to a port that is closed %.1f: %.2f; dropped %v",
		median(clean), median(perSecond), median(flooded), median(flooded)/median(clean),
		median(elsewhere), median(elsewhere)/median(clean), b.fabric.Status().Dropped)
	eventually(t, "the wire is up", func() bool { return a.status(1).Up && b.status(1).Up })
	givenBack(t, before, 8<<20)
	// Something passes beside the garbage, if not in these half seconds.
	for n := 0; n < 10 && median(flooded) == 0; n++ {
		flooded = append(flooded, beside(14800))
	}
	if median(flooded) == 0 {
		t.Error("no honest traffic passes")
	}
	// Half of the clean rate is the aim, and a figure of a quiet machine: the sender
	// of the garbage takes its share of the processors too. What holds anywhere is
	// that garbage for the wire costs no more than garbage for nobody does, half of
	// it allowed for noise.
	if os.Getenv("WIRE_SECONDS") != "" && median(flooded) < median(elsewhere)/2 {
		t.Error("dropping garbage slows honest traffic")
	}
	eventually(t, "garbage is dropped", func() bool { return b.fabric.Status().Dropped["kernel"] > 0 })
}

// flood sends garbage at a rate, from one address: all types, random sessions
// and tokens, and what is right but for the session.
func (l *testLab) flood(sock *udp.Socket, to netip.AddrPort, rate int) (stop func(), sent *atomic.Int64) {
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
			g[0] = proto.TypeByte(proto.MsgType(rng.IntN(9)))
			if i%4 == 0 {
				(&proto.DataHeader{Session: rng.Uint32(), Token: rng.Uint64(), Wire: 1, Length: 68, FragSize: 1400}).Put(g)
			}
			if i%16 == 1 {
				binary.BigEndian.PutUint64(g[8:], proto.DeriveKeys([]byte("another"), "lab").Tag)
			}
		}
		raw := datapath.ToRaw(to)
		tx := &datapath.TxBatch{FD: sock.FD, Failed: func(int, unix.Errno) {}}
		for begin, n := time.Now(), 0; !end.Load(); {
			for !end.Load() && n < int(time.Since(begin).Seconds()*float64(rate)) {
				for range datapath.TxMsgs {
					tx.Start()
					tx.Piece(garbage[n%len(garbage)][:])
					tx.To(&raw)
					n++
				}
				tx.Flush()
				sent.Store(int64(n))
			}
			time.Sleep(500 * time.Microsecond)
		}
	})
	return func() { end.Store(true); group.Wait() }, sent
}
