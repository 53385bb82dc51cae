package podnet

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/api"
	"github.com/c9s-lab/c9s/sidecar/link"
)

// Other nodes' stages are asked for every askEvery until they are over.
const (
	askEvery    = time.Second
	askPatience = 3 * time.Second
)

// resolver finds Pods.
type resolver interface {
	Lookup(ctx context.Context, pod string) ([]netip.Addr, error)
	Forget(pod string)
}

// asker queries other Pods' sidecars for stages. A stage that is over stays over.
type asker struct {
	resolver resolver
	client   *http.Client

	mu   sync.Mutex
	over map[contract.WaitFor]bool
}

func newAsker(resolver resolver) *asker {
	return &asker{resolver: resolver, client: &http.Client{Timeout: askPatience, Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10}}, over: map[contract.WaitFor]bool{}}
}

// ask reports whether the stage is over. If the sidecar is unreachable, it is not.
func (a *asker) ask(ctx context.Context, w contract.WaitFor) bool {
	a.mu.Lock()
	over := a.over[w]
	a.mu.Unlock()
	if over {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	addrs, err := a.resolver.Lookup(ctx, w.Pod)
	if err != nil {
		return false
	}
	for _, at := range addrs {
		if over, err := api.Over(ctx, a.client, at, w); err == nil {
			if over {
				a.mu.Lock()
				a.over[w] = true
				a.mu.Unlock()
			}
			return over
		}
	}
	a.resolver.Forget(w.Pod)
	return false
}

// gate is what the Pod's nodes wait for. It opens once and stays open, over
// restarts of the sidecar too: the devices run already.
type gate struct {
	asker *asker
	from  time.Time
	delay time.Duration
	own   func(contract.WaitFor) (over, mine bool)

	// others are what nodes of other Pods must be over with. One of the own Pod
	// cannot be waited for: a Pod's containers start together.
	others []contract.WaitFor
	links  []contract.WaitFor
	// turn is nil in a lab without a limit.
	turn *turn
	// file remembers that the gate has opened.
	file string

	mu        sync.Mutex
	open      bool
	linksOpen bool
	waiting   string
}

// newGate reads what the manifest's nodes wait for. The longest startup-delay
// counts, since a Pod's containers start together.
func newGate(m *contract.Manifest, asker *asker, own func(contract.WaitFor) (over, mine bool), from time.Time, file string) *gate {
	g := &gate{asker: asker, own: own, from: from, file: file}
	for _, n := range m.Nodes {
		g.delay = max(g.delay, time.Duration(n.Gate.DelaySeconds)*time.Second)
		for _, w := range n.Gate.Create {
			if w.Pod != m.Pod {
				g.others = append(g.others, w)
			}
		}
		g.links = append(g.links, n.Gate.CreateLinks...)
	}
	var began time.Time
	if text, err := os.ReadFile(file); err == nil {
		g.open, g.linksOpen = true, true
		began, _ = time.Parse(time.RFC3339, string(text))
	}
	g.turn = newTurn(m.BootPerWorker, began)
	g.linksOpen = g.linksOpen || len(g.links) == 0
	return g
}

// run asks until everything is open, and calls changed after each opening.
func (g *gate) run(ctx context.Context, changed func()) {
	for {
		done := g.look(ctx)
		changed()
		if done {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-g.turn.wakes():
		case <-time.After(min(askEvery, max(time.Until(g.from.Add(g.delay)), 10*time.Millisecond))):
		}
	}
}

func (g *gate) look(ctx context.Context) bool {
	g.mu.Lock()
	open, linksOpen := g.open, g.linksOpen
	g.mu.Unlock()
	reason := ""
	if !open {
		reason = g.waitsFor(ctx, g.others)
		if left := time.Until(g.from.Add(g.delay)); reason == "" && left > 0 {
			reason = "startup-delay: " + left.Round(time.Second).String() + " left"
		}
		if reason == "" { // what is ready to boot takes its turn
			reason = g.turn.wait()
		}
		open = reason == ""
	}
	if !linksOpen {
		why := g.waitsFor(ctx, g.links)
		linksOpen = why == ""
		if reason == "" {
			reason = why
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open, g.linksOpen, g.waiting = open, linksOpen, reason
	if open && linksOpen {
		// Without the file a restart asks once more, that is all.
		var began []byte
		if b := g.turn.status(); b != nil {
			began = []byte(b.Began.Format(time.RFC3339))
		}
		_ = link.WriteFile(g.file, began)
	}
	return open && linksOpen
}

// waitsFor is the first of the stages that is not over, "" for none.
func (g *gate) waitsFor(ctx context.Context, all []contract.WaitFor) string {
	for _, w := range all {
		over, mine := g.own(w)
		if !mine {
			over = g.asker.ask(ctx, w)
		}
		if !over {
			return "stage " + w.Stage + " of node " + w.Node + " is not over"
		}
	}
	return ""
}

func (g *gate) state() (open, linksOpen bool, waiting string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.linksOpen, g.waiting
}
