// Package live serves the page of a running lab's graph, and keeps it current.
package live

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/graph"
)

// beat is how often a stream of events shows that it is there.
const beat = 15 * time.Second

// Page is a graph that changes, with those who look at it.
type Page struct {
	mu      sync.Mutex
	graph   *graph.Graph
	trouble string
	changed chan struct{} // closed by the next change
}

// NewPage returns a page.
func NewPage(g *graph.Graph) *Page { return &Page{graph: g, changed: make(chan struct{})} }

// Set replaces the graph. The page keeps it, so the caller must not change it any more.
func (p *Page) Set(g *graph.Graph) { p.change(func() { p.graph, p.trouble = g, "" }) }

// Trouble reports why the graph is not current.
func (p *Page) Trouble(text string) { p.change(func() { p.trouble = text }) }

func (p *Page) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Page) look() (g *graph.Graph, trouble string, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.graph, p.trouble, p.changed
}

// Handler serves the page at /, its graph at /graph.json, and changes at /events. It answers
// only requests for a loopback host: a page of somebody else, whose name leads to this machine
// (DNS rebinding), reads nothing.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.page)
	mux.HandleFunc("GET /graph.json", p.json)
	mux.HandleFunc("GET /events", p.events)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host) {
			http.Error(w, "this server answers only at a loopback address", http.StatusMisdirectedRequest)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		mux.ServeHTTP(w, r)
	})
}

// loopback reports whether a Host header names this machine by itself.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && a.IsLoopback()
}

func (p *Page) page(w http.ResponseWriter, _ *http.Request) {
	g, _, _ := p.look()
	nonce := rand.Text()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", fmt.Sprintf(
		"default-src 'none'; script-src 'nonce-%[1]s'; style-src 'nonce-%[1]s'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", nonce))
	_ = graph.Page(w, g, "events", nonce) // the reader has gone
}

func (p *Page) json(w http.ResponseWriter, _ *http.Request) {
	g, _, _ := p.look()
	w.Header().Set("Content-Type", "application/json")
	_ = graph.JSON(w, g) // the reader has gone
}

// update is what has changed since the last event.
type update struct {
	State string                   `json:"state"`
	Nodes map[int]*graph.NodeState `json:"nodes,omitempty"`
	Links map[int]*graph.LinkState `json:"links,omitempty"`
}

// events streams the graph, and then what changes of it. A reader that is slow misses what
// was in between.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(event string, data any) error {
		text, err := json.Marshal(data)
		if err == nil {
			_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
		}
		return err
	}
	var sent *graph.Graph
	said := ""
	for {
		g, trouble, changed := p.look()
		var err error
		switch u, same := difference(sent, g); {
		case !same:
			err = send("graph", g)
		case u != nil:
			err = send("update", u)
		}
		sent = g
		if err == nil && trouble != said {
			err = send("trouble", trouble)
			said = trouble
		}
		if err == nil {
			_ = out.SetWriteDeadline(time.Now().Add(2 * beat))
			err = out.Flush()
		}
		if err != nil {
			return
		}
		select {
		case <-changed:
		case <-time.After(beat):
			_, _ = fmt.Fprint(w, ": still here\n\n") // Flush has the error
		case <-r.Context().Done():
			return
		}
	}
}

// difference returns what changed between two graphs, nil for nothing. same is false where
// that is more than states.
func difference(old, g *graph.Graph) (u *update, same bool) {
	if old == g {
		return nil, true
	}
	if old == nil || old.Name != g.Name || len(old.Nodes) != len(g.Nodes) || len(old.Edges) != len(g.Edges) {
		return nil, false
	}
	u = &update{State: g.State, Nodes: map[int]*graph.NodeState{}, Links: map[int]*graph.LinkState{}}
	for i := range g.Nodes {
		a, b := old.Nodes[i], g.Nodes[i]
		if !reflect.DeepEqual(a.Live, b.Live) {
			u.Nodes[i] = b.Live
		}
		a.Live, b.Live = nil, nil
		if a != b {
			return nil, false
		}
	}
	for i := range g.Edges {
		a, b := old.Edges[i], g.Edges[i]
		if !reflect.DeepEqual(a.Live, b.Live) {
			u.Links[i] = b.Live
		}
		a.Live, b.Live = nil, nil
		if a != b {
			return nil, false
		}
	}
	if len(u.Nodes)+len(u.Links) == 0 && old.State == g.State {
		return nil, true
	}
	return u, true
}
