//go:build linux

package impair

import (
	"container/heap"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/c9s-lab/c9s/pkg/wire/virtio"
)

// delayLimit is the most that one direction queues, in bytes.
const delayLimit = 64 << 20

// Line holds the impaired packets of one direction until they leave.
type Line struct {
	now   func() time.Duration
	pass  func(frame []byte)
	flush func()
	drops *drop.Counters

	mu    sync.Mutex
	imp   *impairer
	queue packetHeap
	bytes int
	seq   uint64
	kick  chan struct{}
	stop  chan struct{}
	done  sync.WaitGroup
}

type waitingPacket struct {
	at    time.Duration
	seq   uint64
	frame []byte
}

// packetHeap is ordered by time, and by arrival at the same time.
type packetHeap []waitingPacket

func (h packetHeap) Len() int { return len(h) }

func (h packetHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h packetHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || (h[i].at == h[j].at && h[i].seq < h[j].seq)
}

func (h *packetHeap) Push(x any) { *h = append(*h, x.(waitingPacket)) }

func (h *packetHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	old[len(old)-1] = waitingPacket{}
	*h = old[:len(old)-1]
	return p
}

// NewLine starts a Line. Its own goroutine calls pass and flush.
func NewLine(now func() time.Duration, cfg contract.Impairment, drops *drop.Counters, pass func([]byte), flush func()) *Line {
	d := &Line{now: now, pass: pass, flush: flush, drops: drops, imp: newImpairer(cfg),
		kick: make(chan struct{}, 1), stop: make(chan struct{})}
	d.done.Go(d.run)
	return d
}

// Set changes the impairment. Queued packets keep their times.
func (d *Line) Set(cfg contract.Impairment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.imp.cfg != cfg {
		d.imp = newImpairer(cfg)
	}
}

// End drops queued packets.
func (d *Line) End() {
	close(d.stop)
	d.done.Wait()
}

// Take queues a copy of a frame with its virtio-net header, or nil. Decisions are made for
// packets as a cable carries them, so super-frames are segmented. Checksums are finished,
// so that corruption is noticed.
func (d *Line) Take(vnet, frame []byte) {
	var h virtio.Header
	if vnet != nil {
		h.Parse(vnet)
	}
	if virtio.Segment(h, frame, d.packet) != nil {
		d.drops.Add(drop.Size)
	}
}

func (d *Line) packet(frame []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := d.imp.decide(d.now(), len(frame), len(d.queue))
	if v.full || (v.copies > 0 && d.bytes+len(frame) > delayLimit) {
		d.drops.Add(drop.ImpairQueue)
		return
	}
	if v.copies == 0 {
		d.drops.Add(drop.ImpairLoss)
		return
	}
	c := append([]byte(nil), frame...)
	if v.corrupt >= 0 {
		c[v.corrupt/8] ^= 1 << (v.corrupt % 8)
	}
	first := len(d.queue) == 0 || v.at < d.queue[0].at
	for range v.copies {
		d.seq++
		d.bytes += len(c)
		heap.Push(&d.queue, waitingPacket{v.at, d.seq, c})
	}
	if first {
		select {
		case d.kick <- struct{}{}:
		default:
		}
	}
}

// run passes packets on when they are due.
func (d *Line) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var ready [][]byte
	for {
		ready = ready[:0]
		wait := time.Hour
		d.mu.Lock()
		now := d.now()
		for len(d.queue) > 0 && len(ready) < 256 {
			if d.queue[0].at > now {
				wait = d.queue[0].at - now
				break
			}
			p := heap.Pop(&d.queue).(waitingPacket)
			d.bytes -= len(p.frame)
			ready = append(ready, p.frame)
			wait = 0
		}
		d.mu.Unlock()
		if len(ready) > 0 {
			for _, f := range ready {
				d.pass(f)
			}
			d.flush()
			select {
			case <-d.stop:
				return
			default:
				continue
			}
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-d.kick:
		case <-d.stop:
			return
		}
	}
}
