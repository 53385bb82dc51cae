//go:build linux

package wire

import (
	"sync/atomic"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// outs is where frames for leg i go. The receiver uses the first.
func (w *wireEnd) outs(i int) *atomic.Pointer[legOut] {
	if i == 0 {
		return &w.out
	}
	return &w.localOut
}

// passer gives what is done with the frames that leg i's device sends.
func (f *Fabric) passer(w *wireEnd, i int) (pass func(vnet, frame []byte), flush func()) {
	direct, flush := f.exit(w, i)
	return func(vnet, frame []byte) {
		if d := w.line[i].Load(); d != nil {
			d.take(vnet, frame)
			return
		}
		direct(vnet, frame)
	}, flush
}

// exit leads from leg i to the other end: the peer, or the other leg.
func (f *Fabric) exit(w *wireEnd, i int) (pass func(vnet, frame []byte), flush func()) {
	if w.local() {
		return f.relay(w, i)
	}
	s := newSender(f)
	return func(vnet, frame []byte) {
		p := w.path.Load()
		if p == nil {
			w.drops.add(dropNoSession)
			return
		}
		s.frame(w, p, vnet, frame)
	}, s.flush
}

// relay leads to the other leg.
func (f *Fabric) relay(w *wireEnd, i int) (pass func(vnet, frame []byte), flush func()) {
	d := newDeliverer()
	locked := false
	pass = func(vnet, frame []byte) {
		if !locked {
			// The other leg's socket must not be closed until it is written to.
			f.rxMu.Lock()
			locked = true
		}
		to := w.outs(1 - i).Load()
		if to == nil {
			w.drops.add(dropDown)
			return
		}
		if i == 0 {
			w.txFrames.Add(1)
			w.txBytes.Add(uint64(len(frame)))
		} else {
			w.rxFrames.Add(1)
			w.rxBytes.Add(uint64(len(frame)))
		}
		if len(vnet) > 0 && vnet[0]|vnet[1] == 0 {
			vnet = nil
		}
		d.parts(to, vnet, frame, nil)
	}
	return pass, func() {
		d.flush()
		if locked {
			f.rxMu.Unlock()
			locked = false
		}
	}
}

// lines makes the delay lines of a wire what its impairments say.
func (k *kernelWorker) lines(w *wireEnd) {
	f := k.f
	f.mu.Lock()
	wants := [2]*lab.Impairment{w.want.Impairment, w.want.ReverseImpairment}
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
			pass, flush := f.exit(w, i)
			w.line[i].Store(newDelayLine(f.now, *want, &w.drops, func(b []byte) { pass(nil, b) }, flush))
		}
	}
}
