package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// fakeSidecars answer as sidecars do, by the Pod's UID.
type fakeSidecars struct {
	mu     sync.Mutex
	status map[types.UID]api.Status
	// silent are those that say nothing; asked counts requests.
	silent map[types.UID]bool
	asked  map[types.UID]int
}

func newFakeSidecars(pods []*corev1.Pod) *fakeSidecars {
	f := &fakeSidecars{status: map[types.UID]api.Status{}, silent: map[types.UID]bool{}, asked: map[types.UID]int{}}
	for _, p := range pods {
		f.status[p.UID] = api.Status{Pod: string(p.UID), Fabric: wire.Status{Wires: []wire.WireStatus{{ID: 1, Up: true, RTT: 1, TxBytes: 1}}}}
	}
	return f
}

func (f *fakeSidecars) set(uid types.UID, change func(*api.Status)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.status[uid]
	s.Fabric.Wires = append([]wire.WireStatus(nil), s.Fabric.Wires...)
	change(&s)
	f.status[uid] = s
}

// times returns how often a sidecar was asked.
func (f *fakeSidecars) times(uid types.UID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[uid]
}

func (f *fakeSidecars) follow(ctx context.Context, p *corev1.Pod, tag string, alive func()) (api.Status, bool, error) {
	f.mu.Lock()
	f.asked[p.UID]++
	f.mu.Unlock()
	for began := time.Now(); ; {
		f.mu.Lock()
		s, silent := f.status[p.UID], f.silent[p.UID]
		f.mu.Unlock()
		switch {
		case silent:
			select {
			case <-ctx.Done():
			case <-time.After(patience):
			}
			return api.Status{}, false, errors.New("silent")
		case s.Tag() != tag:
			return s, true, nil
		case time.Since(began) > api.HoldStatus:
			return api.Status{}, false, nil
		}
		select {
		case <-ctx.Done():
			return api.Status{}, false, ctx.Err()
		case <-time.After(api.BeatStatus / 4):
		}
		alive()
	}
}

// News of a sidecar come at once, what changes all the time is none, and an answer is
// as old as its last confirmation.
func TestAskerFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := pods()[:1]
		uid := all[0].UID
		f := newFakeSidecars(all)
		a := newAsker(5*time.Second, f.follow)
		var news atomic.Int64
		a.changed = func() { news.Add(1) }
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { a.run(ctx, func() []*corev1.Pod { return all }); close(done) }()
		time.Sleep(time.Second)
		if news.Load() != 1 || len(a.answers(all, time.Now())) != 1 {
			t.Fatalf("%d news of a new Pod", news.Load())
		}
		for name, c := range map[string]struct {
			change func(*wire.WireStatus)
			news   int64
		}{
			"traffic":        {func(w *wire.WireStatus) { w.TxBytes, w.RxFrames = 99, 99 }, 0},
			"round trip":     {func(w *wire.WireStatus) { w.RTT, w.Loss = 9, 0.1 }, 0},
			"drops":          {func(w *wire.WireStatus) { w.Drops = map[string]uint64{"too-big": 1} }, 0},
			"a link is down": {func(w *wire.WireStatus) { w.Up = false }, 1},
			"its reason":     {func(w *wire.WireStatus) { w.Reason = "the far end is down" }, 1},
			"its datapath":   {func(w *wire.WireStatus) { w.Datapath = wire.DatapathVXLAN }, 1},
		} {
			before := news.Load()
			f.set(uid, func(s *api.Status) { c.change(&s.Fabric.Wires[0]) })
			time.Sleep(time.Second)
			if n := news.Load() - before; n != c.news {
				t.Errorf("%s: %d news within a second, want %d", name, n, c.news)
			}
		}
		before := f.times(uid)
		time.Sleep(10 * time.Minute)
		if n := f.times(uid) - before; n > 25 {
			t.Errorf("a sidecar at rest is asked %d times in 10 minutes", n)
		}
		if age := a.answers(all, time.Now())["r1"].Age; age > fresh {
			t.Errorf("the answer of a sidecar that is heard is %s old", age)
		}
		f.mu.Lock()
		f.silent[uid] = true
		f.mu.Unlock()
		time.Sleep(forgotten / 2)
		if got, ok := a.answers(all, time.Now())["r1"]; !ok || got.Age < forgotten/4 {
			t.Errorf("a sidecar that is silent: %v, %s old", ok, got.Age)
		}
		time.Sleep(forgotten)
		if n := len(a.answers(all, time.Now())); n != 0 {
			t.Error("an answer is believed for ever")
		}
		stop()
		<-done
	})
}

const fresh = 2 * time.Second

// What is gone is not followed, what has no address yet neither.
func TestAskerFollowsThePodsThatAreThere(t *testing.T) {
	a := newAsker(time.Second, nil)
	all := pods()[:2]
	if n := len(a.missing(t.Context(), all)); n != 2 {
		t.Errorf("%d new Pods", n)
	}
	if n := len(a.missing(t.Context(), all)); n != 0 {
		t.Errorf("%d Pods are followed twice", n)
	}
	gone := a.known[all[1].UID]
	stopped := false
	cancel := gone.stop
	gone.stop = func() { stopped = true; cancel() }
	all[0].Status.PodIP = ""
	if a.missing(t.Context(), all[:1]); len(a.known) != 0 || !stopped {
		t.Errorf("%d are followed", len(a.known))
	}
}

// Sidecars that do not answer, as those of a lost worker, neither keep the others
// waiting nor are asked as often.
func TestSilentSidecars(t *testing.T) {
	const dead, alive = 100, 20
	synctest.Test(t, func(t *testing.T) {
		var all []*corev1.Pod
		for i := range dead + alive {
			p := pods()[0]
			p.UID = types.UID(fmt.Sprint(i))
			all = append(all, p)
		}
		f := newFakeSidecars(all)
		for i := range dead {
			f.silent[all[i].UID] = true
		}
		a := newAsker(5*time.Second, f.follow)
		news := make(chan struct{}, 1000)
		a.changed = func() { news <- struct{}{} }
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { a.run(ctx, func() []*corev1.Pod { return all }); close(done) }()
		time.Sleep(time.Second)
		if len(news) != alive {
			t.Errorf("%d of %d that answer were heard within a second", len(news), alive)
		}
		time.Sleep(10 * time.Minute)
		for i := range dead {
			if n := f.times(all[i].UID); n > 25 {
				t.Errorf("one that is silent is asked %d times in 10 minutes", n)
			}
		}
		// A change of its Pod has it asked at once.
		f.mu.Lock()
		delete(f.silent, all[0].UID)
		f.mu.Unlock()
		before := len(news)
		a.hurry(all[0])
		time.Sleep(time.Second)
		if len(news) != before+1 {
			t.Error("a Pod that has changed waits its turn")
		}
		stop()
		<-done
	})
}

// A new leader does not report before it has asked the sidecars, and does not wait for
// those that are silent.
func TestFirstAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		silent int
		most   time.Duration
	}{
		"all answer":    {0, time.Second},
		"one is silent": {1, patience + time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			all := pods()
			f := newFakeSidecars(all)
			for _, p := range all[:c.silent] {
				f.silent[p.UID] = true
			}
			a := newAsker(5*time.Second, f.follow)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { a.run(ctx, func() []*corev1.Pod { return all }); close(done) }()
			began := time.Now()
			a.firstAnswers(ctx, all)
			if took, heard := time.Since(began), len(a.answers(all, time.Now())); took > c.most || heard != len(all)-c.silent {
				t.Errorf("%s: %d of %d sidecars heard after %s", name, heard, len(all), took)
			}
			stop()
			<-done
		})
	}
}
