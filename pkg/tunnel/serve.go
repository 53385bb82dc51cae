package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/xtaci/smux"
	"golang.org/x/time/rate"
)

// Limits bound what a near end may ask for.
type Limits struct {
	// Connections is how many it may have at the same time.
	Connections int
	// PerSecond is how many dials a second begin; Burst may begin at once. More wait.
	PerSecond float64
	Burst     int
	// Dial is how long one may take.
	Dial time.Duration
}

// requestTime is how long a request may take to come.
const requestTime = 10 * time.Second

// Serve is the far end: it greets, and dials what is asked for until the stream ends or ctx is
// done. Only a failure to greet is an error.
func Serve(ctx context.Context, stream io.ReadWriteCloser, dial func(context.Context, Target) (net.Conn, error), l Limits) error {
	defer stream.Close()
	if _, err := io.WriteString(stream, greeting); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	session, err := smux.Server(newBatch(newEnding(stream, cancel)), settings(farWindow, farBuffer))
	if err != nil {
		return err
	}
	defer session.Close()
	defer context.AfterFunc(ctx, func() { session.Close() })()
	s := &server{dial: dial, limits: l, rate: rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst), seats: make(chan struct{}, l.Connections)}
	var group sync.WaitGroup
	defer group.Wait()
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			cancel()
			return nil
		}
		select {
		case s.seats <- struct{}{}:
			group.Go(func() {
				defer func() { <-s.seats }()
				s.serve(ctx, stream)
			})
		default:
			go s.reject(stream)
		}
	}
}

type server struct {
	dial   func(context.Context, Target) (net.Conn, error)
	limits Limits
	rate   *rate.Limiter
	seats  chan struct{}
}

// reject answers what is over the limit of connections.
func (s *server) reject(stream *smux.Stream) {
	defer stream.Close()
	_ = stream.SetDeadline(time.Now().Add(requestTime))
	if _, err := readText(stream); err == nil {
		_ = writeText(stream, fmt.Sprintf("%s there are %d connections to this node, which is the limit", Busy, s.limits.Connections))
	}
}

// serve is one connection.
func (s *server) serve(ctx context.Context, stream *smux.Stream) {
	defer stream.Close()
	_ = stream.SetDeadline(time.Now().Add(requestTime))
	text, err := readText(stream)
	if err != nil {
		return
	}
	_ = stream.SetDeadline(time.Time{})
	target, err := ParseTarget(text)
	var to net.Conn
	if err != nil {
		err = &DialError{Denied, err.Error()}
	} else if err = s.rate.Wait(ctx); err == nil {
		dialing, cancel := context.WithTimeout(ctx, s.limits.Dial)
		to, err = s.dial(dialing, target)
		if errors.Is(err, context.DeadlineExceeded) {
			err = &DialError{TimedOut, fmt.Sprintf("no answer within %s", s.limits.Dial)}
		}
		cancel()
	}
	if err != nil {
		answer := reasonOf(err)
		_ = writeText(stream, string(answer.Reason)+" "+answer.Text)
		return
	}
	defer to.Close()
	// The end of the tunnel's stream looks like the end of one direction of the connection.
	defer context.AfterFunc(ctx, func() { to.Close() })()
	from := withNetwork(newAnswered(conn{stream, target}), target)
	if target.Network == UDP {
		_ = JoinDatagrams(from, to)
	} else {
		_ = Join(from, to)
	}
}
