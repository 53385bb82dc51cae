//go:build linux

package wire

import (
	"sync/atomic"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/drop"
	"github.com/c9s-lab/c9s/pkg/wire/impair"
)

// outs returns the destination of frames for leg i. udp uses the first one.
func (w *wireEnd) outs(i int) *atomic.Pointer[datapath.Out] {
	if i == 0 {
		return &w.Out
	}
	return &w.localOut
}

// entry returns the function that gets the frames of leg i's device.
func (f *Fabric) entry(w *wireEnd, i int) func(m *datapath.Mover, vnet, frame []byte) {
	direct := f.exit(w, i)
	return func(m *datapath.Mover, vnet, frame []byte) {
		if d := w.line[i].Load(); d != nil {
			d.Take(vnet, frame)
			return
		}
		direct(m, vnet, frame)
	}
}

// exit returns the function that passes frames of leg i to the other end: the peer, or the
// other leg.
func (f *Fabric) exit(w *wireEnd, i int) func(m *datapath.Mover, vnet, frame []byte) {
	if w.local() {
		return f.relay(w, i)
	}
	return func(m *datapath.Mover, vnet, frame []byte) {
		if via := w.via.Load(); via != nil {
			(*via).Frame(&w.End, vnet, frame)
			return
		}
		w.udp.Frame(m, vnet, frame)
	}
}

// relay is exit to the other leg.
func (f *Fabric) relay(w *wireEnd, i int) func(m *datapath.Mover, vnet, frame []byte) {
	frames, bytes := &w.TxFrames, &w.TxBytes
	if i == 1 {
		frames, bytes = &w.RxFrames, &w.RxBytes
	}
	return func(m *datapath.Mover, vnet, frame []byte) {
		m.Hold()
		to := w.outs(1 - i).Load()
		if to == nil {
			w.Drops.Add(drop.Down)
			return
		}
		frames.Add(1)
		bytes.Add(uint64(len(frame)))
		if len(vnet) > 0 && vnet[0]|vnet[1] == 0 {
			vnet = nil
		}
		m.Deliver.Parts(to, vnet, frame, nil)
	}
}

// lines brings the delay lines of a wire to the state that its impairments ask for.
func (k *kernelWorker) lines(w *wireEnd) {
	f := k.f
	f.mu.Lock()
	wants := [2]*contract.Impairment{w.want.Impairment, w.want.ReverseImpairment}
	f.mu.Unlock()
	for i, want := range wants {
		d := w.line[i].Load()
		switch {
		case !want.Frames() || w.legs[i] == nil:
			if d != nil {
				w.line[i].Store(nil)
				d.End()
			}
		case d != nil:
			d.Set(*want)
		default:
			exit, m := f.exit(w, i), f.newMover()
			w.line[i].Store(impair.NewLine(f.now, *want, &w.Drops, func(b []byte) { exit(m, nil, b) }, m.Flush))
		}
	}
}
