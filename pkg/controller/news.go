package controller

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// PathNews answers with the status' Tag. With QuerySince it holds the answer until the Tag
// is another one, for HoldNews at most.
const (
	PathNews   = "/news"
	QuerySince = "since"
	HoldNews   = 4 * time.Second
)

const (
	// maxHeld bounds the answers that are held at a time.
	maxHeld = 32
	// newsSettle is how long changes are gathered before they are looked at.
	newsSettle = 20 * time.Millisecond
	// newsEvery is how often what grows old is looked at.
	newsEvery = time.Second
)

// bell wakes all that wait for it.
type bell struct {
	mu   sync.Mutex
	next chan struct{}
}

// rings returns a channel that is closed when the bell rings next.
func (b *bell) rings() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// serveNews holds an answer until there is news.
func (c *controller) serveNews(w http.ResponseWriter, r *http.Request) {
	select {
	case c.held <- struct{}{}:
		defer func() { <-c.held }()
	default:
		http.Error(w, "too many wait for news", http.StatusServiceUnavailable)
		return
	}
	since := r.URL.Query().Get(QuerySince)
	over := time.NewTimer(HoldNews)
	defer over.Stop()
	for {
		if !c.leading.Load() {
			http.Error(w, "another controller leads", http.StatusServiceUnavailable)
			return
		}
		rings := c.bell.rings() // before the look: what comes after it rings
		tag := c.look().Tag()
		if since != "" && tag == since {
			select {
			case <-rings:
				time.Sleep(newsSettle)
				continue
			case <-time.After(newsEvery):
				continue
			case <-r.Context().Done():
				return
			case <-over.C:
			}
		}
		fmt.Fprint(w, tag)
		return
	}
}
