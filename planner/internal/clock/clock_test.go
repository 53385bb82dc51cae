package clock_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/planner/internal/clock"
)

// TestMain is a program with a pinned clock when its first argument is "probe".
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		if err := probe(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// probe looks at the clock before and after, while others look at it all the time.
func probe() error {
	var others sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for range 2 {
		others.Go(func() {
			for ctx.Err() == nil {
				time.Since(time.Now())
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	if err := clock.Pin(clock.Instant); err != nil {
		return err
	}
	first := time.Now()
	const pause = 30 * time.Millisecond
	time.Sleep(pause)
	second := time.Now()
	cancel()
	others.Wait()
	for _, now := range []time.Time{first, second} {
		if !now.Round(0).Equal(clock.Instant) {
			return fmt.Errorf("it is %v, not %v", now, clock.Instant)
		}
	}
	if passed := second.Sub(first); passed < pause || passed > time.Minute {
		return fmt.Errorf("%v passed in a pause of %v", passed, pause)
	}
	late, cancel := context.WithDeadline(context.Background(), time.Now().Add(pause))
	defer cancel()
	select {
	case <-late.Done():
	case <-time.After(10 * time.Second):
		return fmt.Errorf("a deadline did not pass")
	}
	return nil
}

// TestPin: the wall clock stands, in every thread; the monotonic one and deadlines
// go on. Again and again, since others look at the clock meanwhile.
func TestPin(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if out, err := exec.Command(self, "probe").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if time.Since(clock.Instant) < 0 || time.Now().Equal(clock.Instant) {
		t.Error("this process's own clock is pinned")
	}
}
