// Package access opens connections from the user's machine to the nodes of a lab, through
// tunnels into their Pods. It knows nothing of Kubernetes: its caller starts the far ends.
package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// Start runs the far end of a tunnel in the present Pod of that name until the streams or ctx
// end. An error that wraps ErrAway is tried again.
type Start func(ctx context.Context, pod string, in io.Reader, out, errs io.Writer) error

// ErrAway is wrapped by errors about a Pod that is not running now, but may be soon.
var ErrAway = errors.New("is not running")

// Variables for the tests.
var (
	// A dial waits this long for a Pod that is being replaced, and looks again every retry.
	patience = 15 * time.Second
	retry    = 250 * time.Millisecond
	// greetingTime is how long a far end may take to start and greet.
	greetingTime = 20 * time.Second
)

// errSilent is the error of a far end that does not greet in time.
var errSilent = errors.New("the Pod's sidecar does not answer in time")

// Lab dials nodes. It keeps one tunnel to each Pod, and opens another one when that has ended.
type Lab struct {
	start Start

	mu      sync.Mutex
	tunnels map[string]*opened
	closed  bool
}

// opened is a tunnel that is being opened, or is open.
type opened struct {
	ready  chan struct{} // client or err are set
	client *tunnel.Client
	err    error
	end    context.CancelFunc
}

// New returns a lab without tunnels.
func New(start Start) *Lab { return &Lab{start: start, tunnels: map[string]*opened{}} }

// Dial connects to an address of the node of a Pod. It waits for a Pod that is being replaced.
func (l *Lab) Dial(ctx context.Context, pod string, t tunnel.Target) (net.Conn, error) {
	return l.persist(ctx, pod, func(c *tunnel.Client) (net.Conn, error) { return c.Dial(ctx, t) })
}

// DialEarly is Dial that does not wait for the node: reads of the connection return the error
// of a node that does not take it. The first bytes go with the request.
func (l *Lab) DialEarly(ctx context.Context, pod string, t tunnel.Target, first []byte) (net.Conn, error) {
	return l.persist(ctx, pod, func(c *tunnel.Client) (net.Conn, error) { return c.DialEarly(t, first) })
}

// persist dials until the Pod is there.
func (l *Lab) persist(ctx context.Context, pod string, dial func(*tunnel.Client) (net.Conn, error)) (net.Conn, error) {
	until := time.Now().Add(patience)
	for {
		conn, err := l.try(ctx, pod, dial)
		again := errors.Is(err, ErrAway) || errors.Is(err, tunnel.ErrEnded)
		if !again || ctx.Err() != nil || time.Now().After(until) {
			return conn, err
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (l *Lab) try(ctx context.Context, pod string, dial func(*tunnel.Client) (net.Conn, error)) (net.Conn, error) {
	o, err := l.tunnel(pod)
	if err != nil {
		return nil, err
	}
	select {
	case <-o.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if o.err != nil {
		return nil, o.err
	}
	conn, err := dial(o.client)
	if errors.Is(err, tunnel.ErrEnded) {
		l.forget(pod, o)
	}
	return conn, err
}

// tunnel returns the Pod's tunnel. The first one who asks opens it.
func (l *Lab) tunnel(pod string) (*opened, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, net.ErrClosed
	}
	if o := l.tunnels[pod]; o != nil {
		return o, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	o := &opened{ready: make(chan struct{}), end: cancel}
	l.tunnels[pod] = o
	go func() {
		defer close(o.ready)
		if o.client, o.err = open(ctx, l.start, pod); o.err != nil {
			l.forget(pod, o)
			return
		}
		go func() {
			<-o.client.Ended()
			l.forget(pod, o)
		}()
	}()
	return o, nil
}

// forget has the next dial open another tunnel.
func (l *Lab) forget(pod string, o *opened) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tunnels[pod] == o {
		delete(l.tunnels, pod)
	}
	o.end()
}

// Close ends all tunnels.
func (l *Lab) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, o := range l.tunnels {
		o.end()
	}
}

// open starts a far end and waits for its greeting.
func open(ctx context.Context, start Start, pod string) (*tunnel.Client, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(greetingTime, func() { cancel(errSilent) })
	in, toFar := io.Pipe()
	fromFar, out := io.Pipe()
	complaint := &lastWords{}
	ended := make(chan error, 1)
	go func() {
		err := start(ctx, pod, in, out, complaint)
		ended <- err
		toFar.Close() // its reader sees an end, and no error to log
		out.Close()
	}()
	far := stream{fromFar, toFar}
	waiting := context.AfterFunc(ctx, func() { far.Close() })
	client, err := tunnel.NewClient(far)
	waiting()
	late.Stop()
	if err == nil {
		context.AfterFunc(ctx, func() { client.Close() })
		return client, nil
	}
	defer cancel(nil)
	// The stream is closed, so the far end ends too.
	select {
	case failed := <-ended:
		if failed != nil {
			err = failed
		}
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if text := complaint.String(); text != "" && !errors.Is(err, ErrAway) {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return nil, err
}

// stream is two pipes.
type stream struct {
	*io.PipeReader
	out *io.PipeWriter
}

func (s stream) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s stream) Close() error {
	s.PipeReader.Close()
	return s.out.Close()
}

// lastWords keeps the beginning of what a far end complains of.
type lastWords struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p[:min(len(p), max(0, 1000-w.text.Len()))])
	return len(p), nil
}

// String returns the first line.
func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(w.text.String()), "\n")
	return line
}
