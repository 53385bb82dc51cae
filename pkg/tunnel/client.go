package tunnel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/xtaci/smux"
)

// ErrEnded is wrapped by the errors of a stream that has ended.
var ErrEnded = errors.New("the connection to the Pod has ended")

// ErrGreeting reports that the other side is no far end.
var ErrGreeting = errors.New("the sidecar does not answer as a dialler")

// Client is the near end.
type Client struct {
	session *smux.Session
	ready   chan struct{} // session is set
	ended   chan struct{}
	once    sync.Once
}

// NewClient reads the greeting and begins to multiplex. It closes the stream if it fails.
func NewClient(stream io.ReadWriteCloser) (*Client, error) {
	got := make([]byte, len(greeting))
	if _, err := io.ReadFull(stream, got); err != nil {
		stream.Close()
		return nil, fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	if !bytes.Equal(got, []byte(greeting)) {
		stream.Close()
		return nil, fmt.Errorf("%w, but with %.40q", ErrGreeting, got)
	}
	c := &Client{ready: make(chan struct{}), ended: make(chan struct{})}
	session, err := smux.Client(newBatch(newEnding(stream, c.end)), settings(nearWindow, nearBuffer))
	if err != nil {
		stream.Close()
		return nil, err
	}
	c.session = session
	close(c.ready)
	return c, nil
}

// end closes the session, but not in the caller's goroutine: that may be the session's own.
func (c *Client) end() {
	c.once.Do(func() {
		close(c.ended)
		go func() {
			<-c.ready
			c.session.Close()
		}()
	})
}

// dead reports whether all connections have ended, and not only one.
func (c *Client) dead() bool {
	select {
	case <-c.ended:
		return true
	default:
		return c.session.IsClosed()
	}
}

// Ended is closed when the stream has ended.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// Close ends the stream and all its connections.
func (c *Client) Close() error {
	c.end()
	return nil
}

// Dial asks the far end for a connection and waits for it. The error wraps ErrEnded if the
// stream has ended, and is a *DialError if the far end could not connect. A UDP connection
// keeps datagrams apart.
func (c *Client) Dial(ctx context.Context, t Target) (net.Conn, error) {
	conn, asked, err := c.ask(t, nil)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = asked.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err = asked.wait()
	if err == nil && stop() {
		return conn, nil
	}
	asked.Close()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, err
}

// DialEarly asks the far end for a connection and does not wait for it, which saves a round
// trip to programs that write first: first is what they have written, and goes with the request.
// If the far end cannot connect, each read returns the error that Dial would.
func (c *Client) DialEarly(t Target, first []byte) (net.Conn, error) {
	conn, _, err := c.ask(t, first)
	return conn, err
}

// firstTime is how long First waits, a small part of a round trip.
const firstTime = 300 * time.Microsecond

// First returns what has come by a connection that has just been accepted, for DialEarly: nothing
// if the other side does not write first.
func First(c net.Conn) []byte {
	first := make([]byte, leastBuffer)
	if c.SetReadDeadline(time.Now().Add(firstTime)) != nil {
		return nil
	}
	n, _ := c.Read(first) // an error is there for the next read too
	_ = c.SetReadDeadline(time.Time{})
	return first[:n]
}

// ask sends the request for a connection, and the first bytes of it.
func (c *Client) ask(t Target, first []byte) (net.Conn, *asked, error) {
	stream, err := c.session.OpenStream()
	if err == nil {
		_, err = stream.Write(append(textOf(t.String()), first...))
	}
	if err != nil {
		if stream != nil {
			stream.Close()
		}
		return nil, nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	near := &asked{conn: conn{stream, t}, dead: c.dead}
	return withNetwork(near, t), near, nil
}
