package controller

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/pkg/wire"
	"github.com/c9s-lab/c9s/sidecar/api"
)

func TestAsker(t *testing.T) {
	all := pods()[:1]
	now := time.Now()
	a := newAsker(time.Minute, nil)
	if got := a.due(all, now); len(got.heard) != 1 {
		t.Fatalf("a Pod that is new: %+v is due", got)
	}
	var fail bool
	a.ask = func(context.Context, *corev1.Pod) (api.Status, error) {
		if fail {
			return api.Status{}, context.DeadlineExceeded
		}
		return api.Status{Pod: "r1"}, nil
	}
	news := 0
	a.changed = func() { news++ }
	for _, step := range []struct {
		fail  bool
		news  int
		known int
	}{
		{true, 0, 0},               // no answer yet
		{false, 1, 1},              // the first
		{false, 1, 1},              // the same again
		{true, 1, 1}, {true, 1, 1}, // one try or two without an answer are no news
		{true, 2, 0}, {true, 2, 0}, // the third is, once
		{false, 3, 1}, // and so is its return
	} {
		fail = step.fail
		a.one(t.Context(), all[0])
		if got := len(a.answers(all)); news != step.news || got != step.known {
			t.Errorf("%+v: %d news, %d known", step, news, got)
		}
	}
	k := a.known[all[0].UID]
	k.next, k.asking = time.Time{}, true
	if got := a.due(all, now); len(got.heard) != 0 {
		t.Error("a Pod is asked twice at the same time")
	}
	k.asking, k.next = false, now.Add(time.Hour)
	if got := a.due(all, now); len(got.heard) != 0 {
		t.Error("a Pod is asked before its time")
	}
	if a.hurry(all[0]); len(a.due(all, now).heard) != 1 {
		t.Error("a Pod that has changed waits its turn")
	}
	if a.due(nil, now); len(a.known) != 0 {
		t.Error("a Pod that is gone is remembered")
	}
	noAddress := pods()[:1]
	noAddress[0].Status.PodIP = ""
	if got := a.due(noAddress, now); len(got.heard) != 0 {
		t.Error("a Pod without an address is asked")
	}
	if got := a.due(all, now); len(got.heard) != 1 {
		t.Error("it is not asked when it has one")
	}
}

// What a lab does all the time is no news.
func TestStill(t *testing.T) {
	answer := func(change func(*wire.WireStatus)) api.Status {
		s := api.Status{Pod: "r1", Mgmt: &api.Mgmt{}, Fabric: wire.Status{Wires: []wire.WireStatus{{ID: 1, Up: true, RTT: 1, TxBytes: 1}}}}
		change(&s.Fabric.Wires[0])
		return s
	}
	for name, c := range map[string]struct {
		change func(*wire.WireStatus)
		news   int
	}{
		"traffic":        {func(w *wire.WireStatus) { w.TxBytes, w.RxFrames = 99, 99 }, 0},
		"round trip":     {func(w *wire.WireStatus) { w.RTT, w.Loss = 9, 0.1 }, 0},
		"drops":          {func(w *wire.WireStatus) { w.Drops = map[string]uint64{"too-big": 1} }, 0},
		"a link is down": {func(w *wire.WireStatus) { w.Up = false }, 1},
		"its reason":     {func(w *wire.WireStatus) { w.Reason = "the far end is down" }, 1},
		"its datapath":   {func(w *wire.WireStatus) { w.Datapath = wire.DatapathVXLAN }, 1},
	} {
		all := pods()[:1]
		now := answer(func(*wire.WireStatus) {})
		a := newAsker(time.Minute, func(context.Context, *corev1.Pod) (api.Status, error) { return now, nil })
		a.due(all, time.Now())
		a.one(t.Context(), all[0])
		news := 0
		a.changed = func() { news++ }
		now = answer(c.change)
		a.one(t.Context(), all[0])
		if news != c.news {
			t.Errorf("%s: %d news, want %d", name, news, c.news)
		}
		if got := a.answers(all)["r1"].Fabric.Wires[0]; got.TxBytes != now.Fabric.Wires[0].TxBytes {
			t.Errorf("%s: the answer that is kept is not the last one", name)
		}
	}
}

// Sidecars that do not answer, as those of a lost worker, neither keep the others
// waiting nor are asked as often.
func TestSilentSidecars(t *testing.T) {
	const dead, alive = 100, 20
	var all []*corev1.Pod
	silent := map[types.UID]bool{}
	for i := range dead + alive {
		p := pods()[0]
		p.UID = types.UID(fmt.Sprint(i))
		silent[p.UID] = i < dead
		all = append(all, p)
	}
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[types.UID][]time.Time{}
		a := newAsker(5*time.Second, func(ctx context.Context, p *corev1.Pod) (api.Status, error) {
			mu.Lock()
			asked[p.UID] = append(asked[p.UID], time.Now())
			mu.Unlock()
			if silent[p.UID] {
				<-ctx.Done()
				return api.Status{}, ctx.Err()
			}
			time.Sleep(5 * time.Millisecond)
			return api.Status{Pod: string(p.UID)}, nil
		})
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		// At first nobody knows which are silent.
		known := time.Now().Add(dead / atOnce * patience).Add(a.interval)
		a.run(ctx, func() []*corev1.Pod { return all })
		time.Sleep(time.Second) // the last ones end
		mu.Lock()
		defer mu.Unlock()
		for uid, times := range asked {
			longest := time.Duration(0)
			for i := 1; i < len(times); i++ {
				if times[i].After(known) {
					longest = max(longest, times[i].Sub(times[i-1]))
				}
			}
			if !silent[uid] && longest > a.interval+time.Second {
				t.Errorf("one that answers waited %s", longest)
			}
			if silent[uid] && (longest > 2*seldom || len(times) > 25) {
				t.Errorf("one that is silent is asked %d times in 10 minutes, and waited %s", len(times), longest)
			}
		}
	})
}
