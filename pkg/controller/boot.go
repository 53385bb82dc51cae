package controller

import (
	"context"
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

const (
	// bootMost is how long a Pod that does not become ready keeps its turn.
	bootMost = 10 * time.Minute
	// grantStands is how long a grant counts that the sidecar has not confirmed yet.
	grantStands = 15 * time.Second
	// aheadEvery is how often a Pod is told that it still waits.
	aheadEvery = 5 * time.Second
	// tellPatience is how long a sidecar may take to answer.
	tellPatience = 3 * time.Second
)

// booter grants turns to boot: at most so many Pods of the lab boot at a time on a worker, in
// the order in which they were ready to boot. All it has to know is in the sidecars' statuses,
// so a new controller continues where another one has ended.
type booter struct {
	turn  func(context.Context, netip.Addr) error
	ahead func(context.Context, netip.Addr, int) error

	mu sync.Mutex
	// granted is when a Pod was given its turn, told when it was last told anything.
	granted, told map[types.UID]time.Time
}

func newBooter() *booter {
	client := &http.Client{Timeout: tellPatience, Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10}}
	return &booter{
		turn:    func(ctx context.Context, at netip.Addr) error { return api.Turn(ctx, client, at) },
		ahead:   func(ctx context.Context, at netip.Addr, n int) error { return api.Ahead(ctx, client, at, n) },
		granted: map[types.UID]time.Time{}, told: map[types.UID]time.Time{},
	}
}

// waiting is a Pod that waits for its turn, and the number of Pods before it.
type waiting struct {
	pod   *corev1.Pod
	ahead int
}

// look grants turns and tells the others how many are before them. It does not wait for the
// sidecars' answers.
func (b *booter) look(ctx context.Context, pods []*corev1.Pod, answers map[string]status.Answer, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, at := range b.granted {
		if now.Sub(at) > grantStands {
			delete(b.granted, uid)
		}
	}
	for uid, at := range b.told {
		if now.Sub(at) > bootMost {
			delete(b.told, uid)
		}
	}
	for _, w := range turns(pods, answers, b.granted, now) {
		at, err := podAddress(w.pod)
		switch {
		case err != nil:
		case w.ahead == 0:
			b.granted[w.pod.UID] = now
			go b.grant(ctx, w.pod.UID, at)
		case now.Sub(b.told[w.pod.UID]) >= aheadEvery:
			b.told[w.pod.UID] = now
			go func() { _ = b.ahead(ctx, at, w.ahead) }() // it is told again
		}
	}
}

// grant gives a Pod its turn. One that does not answer loses it to the next one.
func (b *booter) grant(ctx context.Context, uid types.UID, at netip.Addr) {
	if err := b.turn(ctx, at); err != nil {
		b.mu.Lock()
		delete(b.granted, uid)
		b.mu.Unlock()
	}
}

// turns are the Pods that wait; ahead is 0 for those whose turn it is. granted are Pods whose
// sidecars may not have said yet that they boot.
func turns(pods []*corev1.Pod, answers map[string]status.Answer, granted map[types.UID]time.Time, now time.Time) []waiting {
	booting, queues := map[string]int{}, map[string][]*corev1.Pod{}
	boot := func(p *corev1.Pod) *api.Boot { return answers[p.Labels[contract.LabelPod]].Status.Boot }
	for _, p := range pods {
		b := boot(p)
		if b == nil || p.DeletionTimestamp != nil {
			continue
		}
		_, given := granted[p.UID]
		switch {
		case !b.Began.IsZero():
			if now.Sub(b.Began) < bootMost && boots(p) {
				booting[p.Spec.NodeName]++
			}
		case given:
			booting[p.Spec.NodeName]++
		case !b.Since.IsZero():
			queues[p.Spec.NodeName] = append(queues[p.Spec.NodeName], p)
		}
	}
	var out []waiting
	for worker, queue := range queues {
		slices.SortFunc(queue, func(x, y *corev1.Pod) int {
			if c := boot(x).Since.Compare(boot(y).Since); c != 0 {
				return c
			}
			return strings.Compare(x.Name, y.Name)
		})
		for i, p := range queue {
			free := boot(p).PerWorker - booting[worker]
			out = append(out, waiting{p, max(0, i+1-max(0, free))})
		}
	}
	return out
}

// boots reports whether a device of the Pod still starts for the first time. One that has
// ended once does not keep others waiting.
func boots(p *corev1.Pod) bool {
	all := p.Status.ContainerStatuses
	ended := slices.ContainsFunc(all, func(s corev1.ContainerStatus) bool { return s.RestartCount > 0 || s.State.Terminated != nil })
	ready := len(all) > 0 && !slices.ContainsFunc(all, func(s corev1.ContainerStatus) bool { return !s.Ready })
	return !ended && !ready
}
