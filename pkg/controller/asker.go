package controller

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/sidecar/api"
)

// asker asks the sidecars of Pods in turn, a few at a time, and keeps their last
// answers. A Pod that changed is asked at once.
type asker struct {
	interval time.Duration
	ask      func(context.Context, *corev1.Pod) (api.Status, error)
	// changed is called when an answer says something new.
	changed func()

	mu     sync.Mutex
	known  map[types.UID]*answer
	urgent chan struct{}
}

type answer struct {
	status api.Status
	ok     bool
	// missed counts tries without an answer, since one is no news.
	missed int
	next   time.Time
	asking bool
}

const (
	// A sidecar that restarts is silent for a second or two.
	maxMissed = 3
	// patience is how long an answer may take.
	patience = 2 * time.Second
	// seldom is how often a sidecar is asked at least that stays silent.
	seldom = time.Minute
)

func newAsker(interval time.Duration, ask func(context.Context, *corev1.Pod) (api.Status, error)) *asker {
	return &asker{interval: interval, ask: ask, known: map[types.UID]*answer{}, urgent: make(chan struct{}, 1), changed: func() {}}
}

// sidecars asks for their statuses. Each is asked so seldom that a connection
// which is kept costs more than a new one.
var sidecars = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func askSidecar(ctx context.Context, pod *corev1.Pod) (api.Status, error) {
	addr, err := podAddress(pod)
	if err != nil {
		return api.Status{}, err
	}
	return api.Fetch(ctx, sidecars, addr)
}

func podAddress(pod *corev1.Pod) (netip.Addr, error) {
	if pod.Status.PodIP == "" {
		return netip.Addr{}, errors.New("the Pod has no address")
	}
	return netip.ParseAddr(pod.Status.PodIP)
}

// hurry has a Pod asked at once.
func (a *asker) hurry(pod *corev1.Pod) {
	a.mu.Lock()
	if k := a.known[pod.UID]; k != nil {
		k.next = time.Time{}
	}
	a.mu.Unlock()
	select {
	case a.urgent <- struct{}{}:
	default:
	}
}

// answers are the last ones, by the name of the Pod's objects.
func (a *asker) answers(pods []*corev1.Pod) map[string]api.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]api.Status{}
	for _, p := range pods {
		if k := a.known[p.UID]; k != nil && k.ok && p.DeletionTimestamp == nil {
			out[k.status.Pod] = k.status
		}
	}
	return out
}

// atOnce bounds the requests that are under way to sidecars that answered last
// time, and again those to sidecars that did not: the hundred of a lost worker
// must not keep the others waiting.
const atOnce = 8

func (a *asker) run(ctx context.Context, list func() []*corev1.Pod) {
	heard, silent := make(chan struct{}, atOnce), make(chan struct{}, atOnce)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		due := a.due(list(), time.Now())
		for _, pod := range due.silent {
			select {
			case silent <- struct{}{}:
				a.begin(ctx, pod, silent)
			default: // it is due the next time too
			}
		}
		for _, pod := range due.heard {
			select {
			case heard <- struct{}{}:
				a.begin(ctx, pod, heard)
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.urgent:
		}
	}
}

// duePods are Pods to be asked: that answered last time or are new, and that did
// not answer.
type duePods struct{ heard, silent []*corev1.Pod }

// due picks the Pods to ask now and forgets those that are gone.
func (a *asker) due(pods []*corev1.Pod, now time.Time) (out duePods) {
	a.mu.Lock()
	defer a.mu.Unlock()
	there := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		there[p.UID] = true
		k := a.known[p.UID]
		if k == nil {
			k = &answer{}
			a.known[p.UID] = k
		}
		switch {
		case p.Status.PodIP == "" || k.asking || now.Before(k.next):
		case k.missed > 0:
			out.silent = append(out.silent, p)
		default:
			out.heard = append(out.heard, p)
		}
	}
	for uid := range a.known {
		if !there[uid] {
			delete(a.known, uid)
		}
	}
	// There may be more than slots: who has waited longest is first.
	slices.SortFunc(out.silent, func(p, q *corev1.Pod) int { return a.known[p.UID].next.Compare(a.known[q.UID].next) })
	return out
}

// begin asks one Pod, and frees its slot when it has answered.
func (a *asker) begin(ctx context.Context, pod *corev1.Pod, slots chan struct{}) {
	a.mu.Lock()
	k := a.known[pod.UID]
	k.asking, k.next = true, time.Now().Add(a.interval)
	a.mu.Unlock()
	go func() {
		defer func() { <-slots }()
		a.one(ctx, pod)
	}()
}

func (a *asker) one(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := a.ask(ctx, pod)
	a.mu.Lock()
	k := a.known[pod.UID]
	if k == nil {
		a.mu.Unlock()
		return
	}
	k.asking = false
	news := false
	if err == nil {
		news = !k.ok || !reflect.DeepEqual(still(s), still(k.status))
		k.status, k.ok, k.missed = s, true, 0
	} else {
		k.miss(a.interval)
		news = k.missed == maxMissed && k.ok
		k.ok = k.ok && !news
	}
	a.mu.Unlock()
	if news {
		a.changed()
	}
}

// miss notes that there was no answer; the more of them, the later the next try.
func (k *answer) miss(interval time.Duration) {
	k.missed++
	if over := k.missed - maxMissed; over > 0 {
		k.next = time.Now().Add(min(interval<<min(over, 10), seldom))
	}
}

// still is a status without what changes all the time: a lab that carries traffic
// is not news.
func still(s api.Status) api.Status {
	s.Fabric.Dropped, s.Mgmt = nil, nil
	s.Fabric.Wires = slices.Clone(s.Fabric.Wires)
	for i := range s.Fabric.Wires {
		w := &s.Fabric.Wires[i]
		w.RTT, w.Loss, w.Drops = 0, 0, nil
		w.TxFrames, w.TxBytes, w.RxFrames, w.RxBytes = 0, 0, 0, 0
	}
	return s
}
