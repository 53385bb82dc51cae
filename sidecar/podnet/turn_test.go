package podnet

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// TestTurn: a Pod waits for its turn as long as it hears of the controller, and no longer.
func TestTurn(t *testing.T) {
	now := time.Unix(1000, 0)
	turn := newTurn(2, time.Time{})
	turn.now = func() time.Time { return now }
	tell := func(query string, want int) {
		t.Helper()
		w := httptest.NewRecorder()
		turn.serve(w, httptest.NewRequest(http.MethodGet, "/boot?"+query, nil))
		if w.Code != want {
			t.Errorf("%s: %d %s, want %d", query, w.Code, w.Body, want)
		}
	}
	if !turn.status().Since.IsZero() {
		t.Error("it waits before it is asked")
	}
	if why := turn.wait(); why != "boot: at most 2 at a time on a worker" {
		t.Errorf("it waits for %q", why)
	}
	tell("", http.StatusBadRequest)
	tell("ahead=-1", http.StatusBadRequest)
	tell("ahead=3", http.StatusNoContent)
	now = now.Add(turnPatience - time.Second)
	if why := turn.wait(); why != "boot: at most 2 at a time on a worker, 3 before this one" {
		t.Errorf("it waits for %q", why)
	}
	tell("ahead=1", http.StatusNoContent)
	now = now.Add(turnPatience - time.Second)
	if s := turn.status(); turn.wait() == "" || !s.Began.IsZero() || !s.Since.Equal(time.Unix(1000, 0)) {
		t.Errorf("it does not wait while the controller is heard: %+v", s)
	}
	tell("turn=true", http.StatusNoContent)
	select {
	case <-turn.wakes():
	default:
		t.Error("the gate is not woken")
	}
	tell("ahead=5", http.StatusNoContent) // of a controller that has seen an older status
	if why := turn.wait(); why != "" || !turn.status().Began.Equal(now) {
		t.Errorf("it is its turn: %q %+v", why, turn.status())
	}

	silent := newTurn(1, time.Time{})
	silent.now = func() time.Time { return now }
	silent.wait()
	now = now.Add(turnPatience)
	if why := silent.wait(); why != "" {
		t.Errorf("without a controller it waits for %q", why)
	}
	w := httptest.NewRecorder()
	newTurn(0, now).serve(w, httptest.NewRequest(http.MethodGet, "/boot?turn=true", nil))
	if w.Code != http.StatusNotFound || newTurn(0, now).wait() != "" || newTurn(0, now).status() != nil {
		t.Errorf("a lab without a limit: %d", w.Code)
	}
}

// TestGateWithTurn: what a node waits for comes before its turn, and a restart of the sidecar
// keeps when the devices began.
func TestGateWithTurn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gate")
	m := &contract.Manifest{Pod: "r1", BootPerWorker: 1, Nodes: []contract.ManifestNode{{Name: "r1", Gate: contract.Gate{Create: []contract.WaitFor{{Node: "r2", Pod: "r2", Stage: "create"}}}}}}
	over := false
	g := newGate(m, nil, func(contract.WaitFor) (bool, bool) { return over, true }, time.Now(), file)
	if g.look(t.Context()) || !g.turn.status().Since.IsZero() {
		t.Errorf("it has joined the queue: %+v", g.turn.status())
	}
	over = true
	if g.look(t.Context()) || g.turn.status().Since.IsZero() {
		t.Errorf("it has not joined the queue: %+v", g.turn.status())
	}
	if _, _, why := g.state(); !strings.HasPrefix(why, "boot: ") {
		t.Errorf("it waits for %q", why)
	}
	g.turn.serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/boot?turn=true", nil))
	if !g.look(t.Context()) {
		t.Error("the gate is closed")
	}
	again := newGate(m, nil, nil, time.Now(), file)
	if !again.open || again.turn.status().Began.Unix() != g.turn.status().Began.Unix() {
		t.Errorf("after a restart: %+v, before it %+v", again.turn.status(), g.turn.status())
	}
	if text, err := os.ReadFile(file); err != nil || len(text) == 0 {
		t.Errorf("%q %v", text, err)
	}
}
