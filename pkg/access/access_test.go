package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// pods are far ends in memory. Each connection is answered with the Pod's name and run.
type pods struct {
	mu   sync.Mutex
	runs map[string]int
	stop map[string]context.CancelFunc
	// away are Pods that do not run, with how many looks it takes until they do.
	away map[string]int
}

func (p *pods) start(ctx context.Context, pod string, in io.Reader, out, errs io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.mu.Lock()
	if p.away[pod] > 0 {
		p.away[pod]--
		p.mu.Unlock()
		return fmt.Errorf("%s %w", pod, ErrAway)
	}
	p.runs[pod]++
	answer := fmt.Sprint(pod, " ", p.runs[pod])
	p.stop[pod] = cancel
	p.mu.Unlock()
	both := stdio{in, out}
	return tunnel.Serve(ctx, both, func(context.Context, tunnel.Target) (net.Conn, error) {
		a, b := net.Pipe()
		go func() {
			_, _ = io.WriteString(b, answer)
			b.Close()
		}()
		return a, nil
	}, tunnel.Limits{Connections: 10, PerSecond: 1e6, Burst: 1e6, Dial: time.Second})
}

type stdio struct {
	io.Reader
	io.Writer
}

func (s stdio) Close() error {
	return errors.Join(s.Reader.(io.Closer).Close(), s.Writer.(io.Closer).Close())
}

func newPods() *pods {
	return &pods{runs: map[string]int{}, stop: map[string]context.CancelFunc{}, away: map[string]int{}}
}

func ask(t *testing.T, l *Lab, pod string) (string, error) {
	t.Helper()
	conn, err := l.Dial(t.Context(), pod, tunnel.Target{Network: tunnel.TCP, Port: 22})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	got, err := io.ReadAll(conn)
	return string(got), err
}

// A Pod has one tunnel. When that ends, the next dial opens another, and other Pods keep theirs.
func TestTunnels(t *testing.T) {
	p := newPods()
	l := New(p.start)
	defer l.Close()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			want := []string{"r1 1", "r2 1"}[i%2]
			if got, err := ask(t, l, want[:2]); got != want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		})
	}
	group.Wait()
	p.stop["r1"]()
	for pod, want := range map[string]string{"r1": "r1 2", "r2": "r2 1"} {
		if got, err := ask(t, l, pod); got != want || err != nil {
			t.Errorf("after the end of r1: %q, %v, want %q", got, err, want)
		}
	}
	l.Close()
	if _, err := ask(t, l, "r1"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// shorten sets one of the times for a test. Tests of sessions cannot run in a bubble of
// synctest: the sessions' library keeps channels for all of them.
func shorten(t *testing.T, to *time.Duration, d time.Duration) {
	t.Helper()
	old := *to
	*to = d
	t.Cleanup(func() { *to = old })
}

// A dial waits for a Pod that is being replaced, but not for ever.
func TestAway(t *testing.T) {
	shorten(t, &retry, 5*time.Millisecond)
	p := newPods()
	p.away["r1"], p.away["r2"] = 5, 1_000_000
	l := New(p.start)
	defer l.Close()
	if got, err := ask(t, l, "r1"); got != "r1 1" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	shorten(t, &patience, 100*time.Millisecond)
	began := time.Now()
	if _, err := ask(t, l, "r2"); !errors.Is(err, ErrAway) || time.Since(began) < patience {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

// A far end that never greets does not block its Pod for ever: a later dial starts another one.
func TestSilent(t *testing.T) {
	shorten(t, &greetingTime, 200*time.Millisecond)
	p := newPods()
	var runs atomic.Int32
	l := New(func(ctx context.Context, pod string, in io.Reader, out, errs io.Writer) error {
		if runs.Add(1) == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return p.start(ctx, pod, in, out, errs)
	})
	defer l.Close()
	began := time.Now()
	if _, err := ask(t, l, "r1"); !errors.Is(err, errSilent) || time.Since(began) < greetingTime {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	greetingTime = time.Minute
	if got, err := ask(t, l, "r1"); got != "r1 1" || err != nil {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}

// A far end that has greeted stays for longer than the time for it.
func TestGreeted(t *testing.T) {
	shorten(t, &greetingTime, 500*time.Millisecond)
	l := New(newPods().start)
	defer l.Close()
	for began := time.Now(); time.Since(began) < 2*greetingTime; time.Sleep(greetingTime / 4) {
		if got, err := ask(t, l, "r1"); got != "r1 1" || err != nil {
			t.Fatalf("after %s: %q, %v", time.Since(began), got, err)
		}
	}
}

// What keeps a far end from starting is reported with its own words.
func TestStartFails(t *testing.T) {
	for name, c := range map[string]struct {
		start Start
		want  string
	}{
		"an error": {func(context.Context, string, io.Reader, io.Writer, io.Writer) error {
			return errors.New("pods is forbidden")
		}, "pods is forbidden"},
		"a complaint": {func(_ context.Context, _ string, _ io.Reader, _, errs io.Writer) error {
			_, _ = io.WriteString(errs, "c9s-sidecar: there are 16 tunnels\nmore")
			return errors.New("exit code 1")
		}, "exit code 1: c9s-sidecar: there are 16 tunnels"},
		"another program": {func(_ context.Context, _ string, _ io.Reader, out, _ io.Writer) error {
			_, _ = io.WriteString(out, strings.Repeat("hello ", 10))
			return nil
		}, tunnel.ErrGreeting.Error() + `, but with "hello hello hello "`},
	} {
		if _, err := ask(t, New(c.start), "r1"); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
