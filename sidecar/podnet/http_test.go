package podnet

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// A probe with "wait" gets its yes when it becomes true, its no when the time is
// over, and without it the answer at once.
func TestProbesAreHeld(t *testing.T) {
	var yes atomic.Bool
	asked := atomic.Int32{}
	look := func() (bool, string) { asked.Add(1); return yes.Load(), "not yet" }

	if ok, why := await(httptest.NewRequest("GET", "/ready", nil), look); ok || why != "not yet" || asked.Load() != 1 {
		t.Fatalf("without wait: %v %q after %d looks", ok, why, asked.Load())
	}
	if ok, why := await(httptest.NewRequest("GET", "/ready?wait=500ms", nil), look); ok || why != "not yet" || asked.Load() < 3 {
		t.Fatalf("over: %v %q after %d looks", ok, why, asked.Load())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if ok, _ := await(httptest.NewRequest("GET", "/ready?wait=10s", nil).WithContext(ctx), look); ok {
		t.Fatal("a client that went away got a yes")
	}
	time.AfterFunc(50*time.Millisecond, func() { yes.Store(true) })
	if ok, _ := await(httptest.NewRequest("GET", "/ready?wait=10s", nil), look); !ok {
		t.Fatal("no yes in ten seconds")
	}
}
