package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/c9s-lab/c9s/internal/foreign"
)

// guard is the transport of all requests to the API server. It never follows a
// redirect: the answer may be that of a Pod, which the API server passes on, and
// client-go would send the user's credentials wherever it points. It repeats requests
// while the API server cannot be reached, so that its restart ends no deploy.
type guard struct {
	next http.RoundTripper
	// outage is how long the API server may be away.
	outage time.Duration
	// note is called when it cannot be reached, once an outage.
	note func(error)

	mu    sync.Mutex
	noted time.Time
}

// outage is how long a command waits for an API server that has gone away.
const outage = 2 * time.Minute

// retryEvery is the time between two tries.
const retryEvery = time.Second

// impatient marks a context whose requests are not repeated.
type impatient struct{}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	var began time.Time
	for {
		resp, err := g.next.RoundTrip(req)
		if err == nil {
			if err := foreign.NoRedirect(resp); err != nil {
				return nil, err
			}
			return resp, nil
		}
		again := repeat(req, err)
		if again == nil || !began.IsZero() && time.Since(began) > g.outage {
			return nil, err
		}
		if began.IsZero() {
			began = time.Now()
			g.tell(err)
		}
		select {
		case <-time.After(retryEvery):
		case <-req.Context().Done():
			return nil, err
		}
		req = again
	}
}

// tell calls note for the first of the requests that fail in an outage.
func (g *guard) tell(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.note != nil && (g.noted.IsZero() || time.Since(g.noted) > g.outage) {
		g.noted = time.Now()
		g.note(err)
	}
}

// repeat is a request that is to be sent again after an error, or nil: the API server
// did not get it, or it may get it twice without harm.
func repeat(req *http.Request, err error) *http.Request {
	ctx := req.Context()
	if ctx.Err() != nil || ctx.Value(impatient{}) != nil {
		return nil
	}
	var op *net.OpError
	unsent := errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
	torn := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED)
	idempotent := req.Method == http.MethodGet || req.Method == http.MethodPatch
	if !unsent && !(torn && idempotent) {
		return nil
	}
	again := req.Clone(ctx)
	if req.Body == nil || req.Body == http.NoBody {
		return again
	}
	if req.GetBody == nil {
		return nil
	}
	body, bodyErr := req.GetBody()
	if bodyErr != nil {
		return nil
	}
	again.Body = body
	return again
}

// proxy asks a Pod through the API server, since the user's machine seldom reaches
// Pods. The answer is the Pod's: it is bounded in size (bytes) and time.
func (c *Client) proxy(ctx context.Context, namespace, pod string, port int, path string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, impatient{}, true), askTimeout)
	defer cancel()
	body, err := c.Typed.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").
		Name(fmt.Sprintf("%s:%d", pod, port)).SubResource("proxy").Suffix(strings.TrimPrefix(path, "/")).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return foreign.Read(body, limit)
}
