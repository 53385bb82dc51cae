package contract

import (
	"fmt"
	"time"
)

// Impairment of one direction. The zero value impairs nothing.
type Impairment struct {
	// DelayMS and JitterMS are in milliseconds.
	DelayMS  float64 `json:"delayMs,omitempty"`
	JitterMS float64 `json:"jitterMs,omitempty"`
	// Loss, Corruption, Duplication, Reordering are percentages, 0..100.
	Loss        float64 `json:"loss,omitempty"`
	Corruption  float64 `json:"corruption,omitempty"`
	Duplication float64 `json:"duplication,omitempty"`
	Reordering  float64 `json:"reordering,omitempty"`
	// RateKbit is in kbit/s, 0 for no limit.
	RateKbit int `json:"rateKbit,omitempty"`
	// Seed makes the random choices repeatable; 0 picks one.
	Seed int64 `json:"seed,omitempty"`
	// Down takes the carrier from both ends of the link.
	Down bool `json:"down,omitempty"`
}

// Any reports whether an impairment does anything. It may be nil.
func (i *Impairment) Any() bool { return i != nil && *i != Impairment{Seed: i.Seed} }

// Frames reports whether an impairment does anything to the frames of a link that is up. It may
// be nil.
func (i *Impairment) Frames() bool { return i != nil && *i != Impairment{Seed: i.Seed, Down: i.Down} }

// Cuts reports whether an impairment takes the link down. It may be nil.
func (i *Impairment) Cuts() bool { return i != nil && i.Down }

// Fault is an impairment that ends by itself. The sidecar ends it, so that nothing else has to
// be there at the end.
type Fault struct {
	// Impairment takes the place of the interface's own.
	Impairment Impairment `json:"impairment"`
	// Began is when the fault was caused, by the clock of its author.
	Began time.Time `json:"began"`
	// LengthMS is how long the fault lasts, in milliseconds.
	LengthMS int64 `json:"lengthMs"`
	// A fault that comes and goes is on for OnMS at the beginning of every EveryMS; both are 0
	// for one that is on all the time.
	EveryMS int64 `json:"everyMs,omitempty"`
	OnMS    int64 `json:"onMs,omitempty"`
}

// MaxFault is the longest fault.
const MaxFault = 7 * 24 * time.Hour

// The limits of a flap.
const (
	shortestFlap = 200 * time.Millisecond
	shortestDown = 100 * time.Millisecond
	mostFlaps    = 100_000
)

// Flap returns the fault of a link that goes down several times. Its Impairment is not set.
func Flap(began time.Time, times int, every, down time.Duration) (Fault, error) {
	switch {
	case times < 1 || times > mostFlaps:
		return Fault{}, fmt.Errorf("%d times is not from 1 to %d", times, mostFlaps)
	case every < shortestFlap:
		return Fault{}, fmt.Errorf("every %s is more often than every %s", every, shortestFlap)
	case down < shortestDown || down >= every:
		return Fault{}, fmt.Errorf("down for %s is not from %s to less than %s", down, shortestDown, every)
	case time.Duration(times) > MaxFault/every:
		return Fault{}, fmt.Errorf("%d times every %s is longer than %s", times, every, MaxFault)
	}
	return Fault{Began: began.UTC(), LengthMS: (time.Duration(times) * every).Milliseconds(), EveryMS: every.Milliseconds(), OnMS: down.Milliseconds()}, nil
}

// Length is how long the fault lasts.
func (f *Fault) Length() time.Duration { return time.Duration(f.LengthMS) * time.Millisecond }

// At reports whether the fault is on after it has lasted for a time, and when that changes: a
// time since its beginning, 0 if the fault is over.
func (f *Fault) At(after time.Duration) (on bool, next time.Duration) {
	length := f.Length()
	after = max(0, after)
	if after >= length {
		return false, 0
	}
	every, share := time.Duration(f.EveryMS)*time.Millisecond, time.Duration(f.OnMS)*time.Millisecond
	if every <= 0 || share <= 0 || share >= every {
		return true, length
	}
	period := after / every * every
	if after-period < share {
		return true, min(period+share, length)
	}
	return false, min(period+every, length)
}

// Over reports whether the fault is over, by the clock of its author. It may be nil.
func (f *Fault) Over(now time.Time) bool { return f == nil || now.Sub(f.Began) >= f.Length() }

// Rest returns what is left of the fault, which begins now; nil if it is over. What is left of a
// fault that comes and goes begins with a whole period.
func (f *Fault) Rest(now time.Time) *Fault {
	if f.Over(now) {
		return nil
	}
	rest := *f
	gone := max(0, now.Sub(f.Began).Milliseconds())
	if f.EveryMS > 0 {
		gone = (gone + f.EveryMS - 1) / f.EveryMS * f.EveryMS
	}
	rest.Began, rest.LengthMS = now.UTC(), f.LengthMS-gone
	if rest.LengthMS <= 0 {
		return nil
	}
	return &rest
}

// Quality is what an interface does to the frames that it sends.
type Quality struct {
	Impairment *Impairment
	Fault      *Fault
}

// Quality returns what the interface does to what it sends. ok is false for an interface that
// does not lead to a node: it cannot be impaired.
func (i *Interface) Quality() (q Quality, ok bool) {
	switch {
	case i.Wire != nil:
		return Quality{i.Wire.Impairment, i.Wire.Fault}, true
	case i.Local != nil:
		return Quality{i.Local.Impairment, i.Local.Fault}, true
	}
	return Quality{}, false
}

// SetQuality sets what Quality returns. It does not change what the interface points to, which
// other copies of it may share.
func (i *Interface) SetQuality(q Quality) {
	switch {
	case i.Wire != nil:
		w := *i.Wire
		w.Impairment, w.Fault = q.Impairment, q.Fault
		i.Wire = &w
	case i.Local != nil:
		l := *i.Local
		l.Impairment, l.Fault = q.Impairment, q.Fault
		i.Local = &l
	}
}

// Now returns the impairment that is in effect, by the clock of the fault's author; nil for
// none.
func (q Quality) Now(now time.Time) *Impairment {
	if q.Fault != nil {
		if on, _ := q.Fault.At(now.Sub(q.Fault.Began)); on {
			return &q.Fault.Impairment
		}
	}
	return q.Impairment
}

// Change changes the impairment, and that of a fault which is not over, so that it does not undo
// the change for a while. A fault that then differs no more is removed.
func (q Quality) Change(now time.Time, change func(*Impairment)) Quality {
	after := q.copied()
	change(&after)
	out := Quality{Impairment: &after}
	if !q.Fault.Over(now) {
		f := *q.Fault
		if change(&f.Impairment); f.Impairment != after {
			out.Fault = &f
		}
	}
	if !out.Impairment.Any() {
		out.Impairment = nil
	}
	return out
}

// Cause changes the impairment for a while: f has the times. A fault that is not over is
// continued.
func (q Quality) Cause(f Fault, change func(*Impairment)) Quality {
	f.Impairment = q.copied()
	if !q.Fault.Over(f.Began) && q.Fault.EveryMS == 0 {
		f.Impairment = q.Fault.Impairment
	}
	change(&f.Impairment)
	return Quality{Impairment: q.Impairment, Fault: &f}
}

func (q Quality) copied() Impairment {
	if q.Impairment == nil {
		return Impairment{}
	}
	return *q.Impairment
}
