package podnet

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/sidecar/api"
)

// said is the last answer to PathStatus. It serves all requests of the same moment, so that
// many cost no more than a few.
type said struct {
	mu   sync.Mutex
	at   time.Time
	text []byte
}

// moments is how long an answer serves.
const moments = 50 * time.Millisecond

func (c *said) get(look func() any) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text == nil || time.Since(c.at) > moments {
		var b bytes.Buffer
		out := json.NewEncoder(&b)
		out.SetIndent("", "  ")
		if err := out.Encode(look()); err != nil {
			return nil
		}
		c.at, c.text = time.Now(), b.Bytes()
	}
	return c.text
}

func (s *sidecar) serveStatus(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Has(api.QuerySince) {
		s.holdStatus(w, r)
		return
	}
	// A client that went away is the only failure.
	_, _ = w.Write(s.said.get(func() any { return s.status() }))
}

// lookEvery is how often a held answer looks for news, besides when the fabric or a pass
// has some: a program's result is a file that the device writes.
const lookEvery = 300 * time.Millisecond

// holdStatus answers when there is a status with another tag than the client's.
func (s *sidecar) holdStatus(w http.ResponseWriter, r *http.Request) {
	since := r.URL.Query().Get(api.QuerySince)
	control := http.NewResponseController(w)
	// The time to read a request is over long before its answer.
	if err := control.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	began, beat := time.Now(), time.Now()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		news := s.news.wait()
		// Each write has its own time: the whole answer takes longer than the server allows.
		if err := control.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return
		}
		// In the end there is at least what changes all the time.
		if now := s.status(); now.Tag() != since || time.Since(began) > api.HoldStatus {
			_ = json.NewEncoder(w).Encode(now)
			return
		}
		if time.Since(beat) > api.BeatStatus-lookEvery/2 {
			beat = time.Now()
			if _, err := io.WriteString(w, " "); err != nil || control.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-news:
		case <-look.C:
		}
	}
}

// news wakes all who wait for some.
type news struct {
	mu sync.Mutex
	c  chan struct{}
}

// wait returns a channel that is closed by the next tell.
func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c == nil {
		n.c = make(chan struct{})
	}
	return n.c
}

func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.c != nil {
		close(n.c)
		n.c = nil
	}
}
