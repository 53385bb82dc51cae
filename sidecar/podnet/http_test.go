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
	// At the beginning and in between; a machine that stands still in between has longer.
	for wait := 500 * time.Millisecond; ; wait *= 2 {
		asked.Store(0)
		if ok, why := await(httptest.NewRequest("GET", "/ready?wait="+wait.String(), nil), look); ok || why != "not yet" {
			t.Fatalf("over: %v %q after %d looks", ok, why, asked.Load())
		}
		if asked.Load() >= 2 {
			break
		}
		if wait > 10*time.Second {
			t.Fatalf("%d looks in %v", asked.Load(), wait)
		}
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
