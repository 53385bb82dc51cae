package controller

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
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

// A sidecar that restarts is silent for a second or two.
const maxMissed = 3

func newAsker(interval time.Duration, ask func(context.Context, *corev1.Pod) (api.Status, error)) *asker {
	return &asker{interval: interval, ask: ask, known: map[types.UID]*answer{}, urgent: make(chan struct{}, 1), changed: func() {}}
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

// atOnce bounds the requests that are under way.
const atOnce = 8

func (a *asker) run(ctx context.Context, list func() []*corev1.Pod) {
	slots := make(chan struct{}, atOnce)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for _, pod := range a.due(list(), time.Now()) {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			go func() {
				defer func() { <-slots }()
				a.one(ctx, pod)
			}()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.urgent:
		}
	}
}

// due picks the Pods to ask now and forgets those that are gone.
func (a *asker) due(pods []*corev1.Pod, now time.Time) []*corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	there := make(map[types.UID]bool, len(pods))
	var out []*corev1.Pod
	for _, p := range pods {
		there[p.UID] = true
		k := a.known[p.UID]
		if k == nil {
			k = &answer{}
			a.known[p.UID] = k
		}
		if p.Status.PodIP == "" || k.asking || now.Before(k.next) {
			continue
		}
		k.asking, k.next = true, now.Add(a.interval)
		out = append(out, p)
	}
	for uid := range a.known {
		if !there[uid] {
			delete(a.known, uid)
		}
	}
	return out
}

func (a *asker) one(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, a.interval)
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
		news = !k.ok || !reflect.DeepEqual(s, k.status)
		k.status, k.ok, k.missed = s, true, 0
	} else if k.missed++; k.missed == maxMissed && k.ok {
		k.ok, news = false, true
	}
	a.mu.Unlock()
	if news {
		a.changed()
	}
}

func podAddress(pod *corev1.Pod) (netip.Addr, error) {
	if pod.Status.PodIP == "" {
		return netip.Addr{}, errors.New("the Pod has no address")
	}
	return netip.ParseAddr(pod.Status.PodIP)
}
