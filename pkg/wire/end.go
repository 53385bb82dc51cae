//go:build linux

package wire

import (
	"sync/atomic"
	"time"

	"github.com/c9s-lab/c9s/pkg/wire/datapath"
	"github.com/c9s-lab/c9s/pkg/wire/impair"
	"github.com/c9s-lab/c9s/pkg/wire/udp"
)

// wireEnd is a wire of this Pod. The datapaths use the fields before want; the fabric's
// lock guards the others.
type wireEnd struct {
	datapath.End
	udp      udp.Wire
	localOut atomic.Pointer[datapath.Out]   // of the second leg
	line     [2]atomic.Pointer[impair.Line] // nil without impairment
	// via gets what the device sends. nil: udp.
	via atomic.Pointer[datapath.Carrier]

	want  Wire
	added time.Duration
	// legs are this end's leg and, for a wire inside the Pod, the other one.
	legs [2]*leg
	// paths are the states of the fabric's datapaths, in their order.
	paths []pathState
	gone  bool // to be taken apart
	// up, reason and since are those of Status.
	up     bool
	reason string
	since  time.Time
}

func (f *Fabric) newEnd(want Wire) *wireEnd {
	w := &wireEnd{added: f.now(), since: time.Now(), reason: ReasonStarting, paths: make([]pathState, len(f.datapaths))}
	w.ID, w.End.Legs, w.udp.End = want.ID, &f.rxMu, &w.End
	w.legs[0] = &leg{name: want.Leg, index: want.LegIndex, keep: true}
	if want.LocalLeg != "" {
		w.legs[1] = &leg{name: want.LocalLeg, index: want.LocalIndex, keep: true}
	}
	return w
}

// cut reports whether an impairment takes the carrier from the wire's ends here.
func (w *wireEnd) cut() bool {
	return w.want.Impairment.Cuts() || w.want.ReverseImpairment.Cuts()
}

// carrier is what a leg of the wire knows of its carrier by itself.
func (w *wireEnd) carrier(l *leg) carrier {
	return carrier{cut: w.cut(), observed: l.observed, device: l.device}
}

// local reports whether both ends are in this Pod.
func (w *wireEnd) local() bool { return w.legs[1] != nil }

// leg is a leg of a wire as it was last seen.
type leg struct {
	name  string
	index int // 0: not found
	// peerIndex is the device's side where it is in the same namespace or, if away, in
	// the devices'; else 0.
	peerIndex int
	away      bool
	looked    bool // its state has been asked for
	// admin is the leg's own state; observed and device are about the other side.
	admin            bool
	observed, device bool
	up               bool // desired
	keep             bool // no desire
	sock             *datapath.Socket
	sockIndex        int
	reader           *datapath.Reader
	failed           string
}

// see records the leg's flags from the kernel, and reports whether they changed the state
// of the device. Without IFF_UP they say nothing about the device.
func (l *leg) see(admin, lower bool) bool {
	l.admin = admin
	if !admin {
		return false
	}
	return l.seeDevice(lower)
}

func (l *leg) seeDevice(up bool) bool {
	changed := !l.observed || l.device != up
	l.observed, l.device = true, up
	return changed
}

// moveTo sets another index of the leg, unless it is 0.
func (l *leg) moveTo(index int) {
	if l != nil && index != 0 && index != l.index {
		l.lost()
		l.index = index
	}
}

// lost resets a leg that no longer exists.
func (l *leg) lost() {
	l.index, l.peerIndex, l.admin, l.observed, l.device, l.failed = 0, 0, false, false, false, ""
}
