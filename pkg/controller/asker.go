package controller

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/status"
	"github.com/c9s-lab/c9s/sidecar/api"
)

// asker follows the sidecars of all Pods, each by one request that is answered when
// there is something new, and keeps their last answers.
type asker struct {
	// interval is the pause after an immediate answer without news, as older sidecars
	// give.
	interval time.Duration
	// follow waits for an answer that has another tag than the last one, and calls alive
	// whenever it hears that there is none. Without a change it returns the same.
	follow func(ctx context.Context, pod *corev1.Pod, tag string, alive func()) (s api.Status, changed bool, err error)
	// changed is called when an answer has news.
	changed func()

	mu     sync.Mutex
	known  map[types.UID]*answer
	urgent chan struct{}
}

// answer is the state of one Pod. The asker's lock guards it.
type answer struct {
	pod    *corev1.Pod
	status api.Status
	ok     bool
	// at is when the answer was last confirmed.
	at time.Time
	// missed counts tries without an answer.
	missed int
	// retry ends the pause after a try.
	retry chan struct{}
	stop  context.CancelFunc
}

// defaultInterval is well below the age at which the status calls a sidecar silent.
const defaultInterval = 2 * time.Second

const (
	// patience is how long a sidecar may say nothing.
	patience = 3 * time.Second
	// soonest and seldom are how long a sidecar that does not answer is left alone at
	// first and at most.
	soonest = 250 * time.Millisecond
	seldom  = time.Minute
	// forgotten is when an answer is too old to say anything.
	forgotten = 15 * time.Second
)

func newAsker(interval time.Duration, follow func(context.Context, *corev1.Pod, string, func()) (api.Status, bool, error)) *asker {
	return &asker{interval: interval, follow: follow, known: map[types.UID]*answer{}, urgent: make(chan struct{}, 1), changed: func() {}}
}

// sidecars asks for their statuses, over connections that are kept.
var sidecars = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 20 * time.Second, MaxResponseHeaderBytes: 16 << 10}}

func followSidecar(ctx context.Context, pod *corev1.Pod, tag string, alive func()) (api.Status, bool, error) {
	addr, err := podAddress(pod)
	if err != nil {
		return api.Status{}, false, err
	}
	return api.Follow(ctx, sidecars, addr, tag, alive)
}

func podAddress(pod *corev1.Pod) (netip.Addr, error) {
	if pod.Status.PodIP == "" {
		return netip.Addr{}, errors.New("the Pod has no address")
	}
	return netip.ParseAddr(pod.Status.PodIP)
}

// hurry has a Pod asked at once, if its sidecar is left alone now.
func (a *asker) hurry(pod *corev1.Pod) {
	a.mu.Lock()
	if k := a.known[pod.UID]; k != nil {
		k.pod = pod
		poke(k.retry)
	}
	a.mu.Unlock()
	poke(a.urgent)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// answers are the last ones, by the name of the Pod's objects.
func (a *asker) answers(pods []*corev1.Pod, now time.Time) map[string]status.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]status.Answer{}
	for _, p := range pods {
		k := a.known[p.UID]
		if k == nil || !k.ok || p.DeletionTimestamp != nil || now.Sub(k.at) > forgotten {
			continue
		}
		out[p.Labels[contract.LabelPod]] = status.Answer{Status: k.status, Age: now.Sub(k.at)}
	}
	return out
}

// firstAnswers waits until each of some Pods has answered or has failed to, for patience at
// most. A new leader that reports earlier reports sidecars as silent that it has not asked yet.
func (a *asker) firstAnswers(ctx context.Context, pods []*corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !a.tried(pods) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// tried reports whether all of some Pods have been asked.
func (a *asker) tried(pods []*corev1.Pod) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		k := a.known[p.UID]
		return p.Status.PodIP != "" && !status.Ended(p) && (k == nil || !k.ok && k.missed == 0)
	})
}

// applied are the digests of all links that sidecars have applied: another one tells of
// an edit.
func (a *asker) applied() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for _, k := range a.known {
		all = append(all, k.status.Pod+" "+k.status.Links)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// run follows the Pods of the list until ctx ends.
func (a *asker) run(ctx context.Context, list func() []*corev1.Pod) {
	var group sync.WaitGroup
	defer group.Wait()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for _, k := range a.missing(ctx, list()) {
			group.Go(func() { a.keep(k.ctx, k.answer) })
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.urgent:
		}
	}
}

// follower is an answer to be kept until ctx ends.
type follower struct {
	ctx    context.Context
	answer *answer
}

// missing notes the Pods that are new and forgets those that are gone.
func (a *asker) missing(ctx context.Context, pods []*corev1.Pod) (out []follower) {
	a.mu.Lock()
	defer a.mu.Unlock()
	there := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		if p.Status.PodIP == "" || status.Ended(p) {
			continue
		}
		there[p.UID] = true
		if a.known[p.UID] == nil {
			k := &answer{pod: p, retry: make(chan struct{}, 1)}
			var own context.Context
			own, k.stop = context.WithCancel(ctx)
			a.known[p.UID] = k
			out = append(out, follower{own, k})
		}
	}
	for uid, k := range a.known {
		if !there[uid] {
			k.stop()
			delete(a.known, uid)
		}
	}
	return out
}

// keep follows one Pod.
func (a *asker) keep(ctx context.Context, k *answer) {
	defer k.stop()
	for ctx.Err() == nil {
		pause := a.one(ctx, k)
		if pause == 0 {
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-k.retry:
		}
		timer.Stop()
	}
}

// one asks once, and returns how long to leave the sidecar alone.
func (a *asker) one(ctx context.Context, k *answer) time.Duration {
	a.mu.Lock()
	pod, tag := k.pod, ""
	if k.ok {
		tag = k.status.Tag()
	}
	a.mu.Unlock()
	began := time.Now()
	s, changed, err := a.follow(ctx, pod, tag, func() {
		a.mu.Lock()
		k.at = time.Now()
		a.mu.Unlock()
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		k.missed++
		return min(soonest<<min(k.missed-1, 10), seldom)
	}
	k.missed, k.at = 0, time.Now()
	if !changed {
		return max(0, a.interval-time.Since(began))
	}
	news := !k.ok || s.Tag() != tag
	k.status, k.ok = s, true
	if news {
		a.changed()
		return 0
	}
	return max(0, a.interval-time.Since(began)) // an older sidecar
}
