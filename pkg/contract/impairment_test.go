package contract

import (
	"testing"
	"time"
)

// TestFaultAt: a fault is on at the beginning of each of its periods, and ends.
func TestFaultAt(t *testing.T) {
	flap := Fault{LengthMS: 6000, EveryMS: 2000, OnMS: 500}
	once := Fault{LengthMS: 30_000}
	for _, tt := range []struct {
		name  string
		fault Fault
		after time.Duration
		on    bool
		next  time.Duration
	}{
		{"once, at its beginning", once, 0, true, 30 * time.Second},
		{"once, before its beginning by another clock", once, -time.Minute, true, 30 * time.Second},
		{"once, just before its end", once, 29_999 * time.Millisecond, true, 30 * time.Second},
		{"once, over", once, 30 * time.Second, false, 0},
		{"flap, down", flap, 0, true, 500 * time.Millisecond},
		{"flap, up", flap, 500 * time.Millisecond, false, 2 * time.Second},
		{"flap, down again", flap, 4100 * time.Millisecond, true, 4500 * time.Millisecond},
		{"flap, up for the last time", flap, 5 * time.Second, false, 6 * time.Second},
		{"flap, over", flap, 6 * time.Second, false, 0},
		{"a share that is the whole", Fault{LengthMS: 4000, EveryMS: 1000, OnMS: 1000}, time.Second, true, 4 * time.Second},
		{"no length", Fault{}, 0, false, 0},
	} {
		if on, next := tt.fault.At(tt.after); on != tt.on || next != tt.next {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, on, next, tt.on, tt.next)
		}
	}
}

// TestQualityChange: a change holds beyond a fault, and a fault ends with what was there before.
func TestQualityChange(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	during, afterwards := began.Add(time.Second), began.Add(time.Minute)
	down := func(i *Impairment) { i.Down = true }
	up := func(i *Impairment) { i.Down = false }
	delay := func(i *Impairment) { i.DelayMS = 50 }
	q := Quality{}.Cause(Fault{Began: began, LengthMS: 30_000}, down)
	check := func(what string, q Quality, at time.Time, want Impairment) {
		t.Helper()
		got := Impairment{}
		if i := q.Now(at); i != nil {
			got = *i
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("down for 30 s", q, during, Impairment{Down: true})
	check("down for 30 s, over", q, afterwards, Impairment{})
	delayed := q.Change(during, delay)
	check("delay while it is down", delayed, during, Impairment{Down: true, DelayMS: 50})
	check("delay, after it was down", delayed, afterwards, Impairment{DelayMS: 50})
	lifted := delayed.Change(during, up)
	if lifted.Fault != nil {
		t.Errorf("a fault that changes nothing any more is %+v", lifted.Fault)
	}
	check("up before its time", lifted, during, Impairment{DelayMS: 50})
	if late := q.Change(afterwards, delay); late.Fault != nil {
		t.Errorf("a fault that was over is %+v", late.Fault)
	}
	if none := (Quality{Impairment: &Impairment{Down: true, Seed: 7}}).Change(during, up); none.Impairment != nil {
		t.Errorf("an impairment that does nothing is %+v", none.Impairment)
	}
	both := q.Cause(Fault{Began: during, LengthMS: 60_000}, delay)
	check("a second fault", both, afterwards, Impairment{Down: true, DelayMS: 50})
	if q.Fault.Impairment.DelayMS != 0 {
		t.Error("a change shows in the quality that it was made from")
	}
}

// TestImpairmentDoes: a seed does nothing, and a cut does nothing to the frames of a link.
func TestImpairmentDoes(t *testing.T) {
	for _, tt := range []struct {
		i           *Impairment
		any, frames bool
	}{{nil, false, false}, {&Impairment{Seed: 4}, false, false}, {&Impairment{Loss: 1}, true, true}, {&Impairment{Down: true, Seed: 4}, true, false}} {
		if tt.i.Any() != tt.any || tt.i.Frames() != tt.frames {
			t.Errorf("%+v: %v, %v", tt.i, tt.i.Any(), tt.i.Frames())
		}
	}
}

// TestSetQuality: the interface is changed, not what its copies share.
func TestSetQuality(t *testing.T) {
	wire := Interface{Name: "eth1", Wire: &Wire{ID: 1}}
	for _, in := range []Interface{wire, {Name: "eth1", Local: &Local{ID: 1}}} {
		copied := in
		copied.SetQuality(Quality{Impairment: &Impairment{Loss: 1}})
		if q, ok := copied.Quality(); !ok || q.Impairment == nil || q.Impairment.Loss != 1 {
			t.Errorf("%+v, %v", q, ok)
		}
		if q, _ := in.Quality(); q.Impairment != nil {
			t.Errorf("the original is %+v", q)
		}
	}
	dummy := Interface{Name: "eth1", Dummy: true}
	dummy.SetQuality(Quality{Impairment: &Impairment{Loss: 1}})
	if _, ok := dummy.Quality(); ok {
		t.Error("a dummy can be impaired")
	}
}
