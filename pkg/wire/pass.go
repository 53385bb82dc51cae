//go:build linux

package wire

import (
	"sync/atomic"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// outs is where frames for leg i go. The receiver uses the first.
func (w *wireEnd) outs(i int) *atomic.Pointer[legOut] {
	if i == 0 {
		return &w.out
	}
	return &w.localOut
}

// entry takes the frames that leg i's device sends.
func (f *Fabric) entry(w *wireEnd, i int) func(m *mover, vnet, frame []byte) {
	direct := f.exit(w, i)
	return func(m *mover, vnet, frame []byte) {
		if d := w.line[i].Load(); d != nil {
			d.take(vnet, frame)
			return
		}
		direct(m, vnet, frame)
	}
}

// exit leads from leg i to the other end: the peer, or the other leg.
func (f *Fabric) exit(w *wireEnd, i int) func(m *mover, vnet, frame []byte) {
	if w.local() {
		return f.relay(w, i)
	}
	return func(m *mover, vnet, frame []byte) {
		p := w.path.Load()
		if p == nil {
			w.drops.add(dropNoSession)
			return
		}
		m.send.frame(w, p, vnet, frame)
	}
}

// relay leads to the other leg.
func (f *Fabric) relay(w *wireEnd, i int) func(m *mover, vnet, frame []byte) {
	frames, bytes := &w.txFrames, &w.txBytes
	if i == 1 {
		frames, bytes = &w.rxFrames, &w.rxBytes
	}
	return func(m *mover, vnet, frame []byte) {
		m.hold(f)
		to := w.outs(1 - i).Load()
		if to == nil {
			w.drops.add(dropDown)
			return
		}
		frames.Add(1)
		bytes.Add(uint64(len(frame)))
		if len(vnet) > 0 && vnet[0]|vnet[1] == 0 {
			vnet = nil
		}
		m.del.parts(to, vnet, frame, nil)
	}
}

// lines makes the delay lines of a wire what its impairments say.
func (k *kernelWorker) lines(w *wireEnd) {
	f := k.f
	f.mu.Lock()
	wants := [2]*contract.Impairment{w.want.Impairment, w.want.ReverseImpairment}
	f.mu.Unlock()
	for i, want := range wants {
		d := w.line[i].Load()
		switch {
		case !impairs(want) || w.legs[i] == nil:
			if d != nil {
				w.line[i].Store(nil)
				d.end()
			}
		case d != nil:
			d.set(*want)
		default:
			exit, m := f.exit(w, i), newMover(f)
			w.line[i].Store(newDelayLine(f.now, *want, &w.drops, func(b []byte) { exit(m, nil, b) }, m.flush))
		}
	}
}
