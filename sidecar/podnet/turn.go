package podnet

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/sidecar/api"
)

// turnPatience is how long a Pod waits for its turn without hearing of the controller. After
// that, its devices start: a lab does not depend on the controller.
const turnPatience = 30 * time.Second

// turn is the Pod's turn to boot its devices, which the controller grants.
type turn struct {
	perWorker int
	now       func() time.Time
	// granted wakes the gate.
	granted poke

	mu    sync.Mutex
	state api.Boot
	heard time.Time
	ahead int
	mine  bool
}

// newTurn returns nil for a lab without a limit. began is when the devices could start in an
// earlier process of this Pod, zero for never.
func newTurn(perWorker int, began time.Time) *turn {
	if perWorker == 0 {
		return nil
	}
	return &turn{perWorker: perWorker, now: time.Now, granted: newPoke(), state: api.Boot{PerWorker: perWorker, Began: began}}
}

// wait reports what the Pod waits for, "" if it is its turn. The first call joins the queue.
func (t *turn) wait() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.state.Since.IsZero() {
		t.state.Since, t.heard = now, now
	}
	if !t.mine && now.Sub(t.heard) < turnPatience {
		reason := fmt.Sprintf("boot: at most %d at a time on a worker", t.perWorker)
		if t.ahead > 0 {
			reason += fmt.Sprintf(", %d before this one", t.ahead)
		}
		return reason
	}
	if t.state.Began.IsZero() {
		t.state.Began = now
	}
	return ""
}

// status is what the controller sees, nil for a lab without a limit.
func (t *turn) status() *api.Boot {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	state := t.state
	return &state
}

// wakes is the channel that receives after a grant.
func (t *turn) wakes() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.granted
}

// serve takes the controller's answer. Anybody in the cluster's network can give it: the worst
// that comes of it is a device that boots early.
func (t *turn) serve(w http.ResponseWriter, r *http.Request) {
	if t == nil {
		http.Error(w, "the lab has no limit", http.StatusNotFound)
		return
	}
	q := r.URL.Query()
	ahead, err := strconv.Atoi(q.Get(api.QueryAhead))
	mine := q.Get(api.QueryTurn) == "true"
	if !mine && (err != nil || ahead < 0) {
		http.Error(w, api.QueryTurn+" or "+api.QueryAhead+" is needed", http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	t.heard, t.ahead, t.mine = t.now(), ahead, t.mine || mine
	t.mu.Unlock()
	if mine {
		t.granted.poke()
	}
	w.WriteHeader(http.StatusNoContent)
}
