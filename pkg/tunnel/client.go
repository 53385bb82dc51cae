package tunnel

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
	conn, asked, err := c.ask(t)
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
// trip to programs that write first. If the far end cannot connect, each read returns the error
// that Dial would.
func (c *Client) DialEarly(t Target) (net.Conn, error) {
	conn, _, err := c.ask(t)
	return conn, err
}

// ask sends the request for a connection.
func (c *Client) ask(t Target) (net.Conn, *conn, error) {
	stream, err := c.session.OpenStream()
	if err == nil {
		err = writeText(stream, t.String())
	}
	if err != nil {
		if stream != nil {
			stream.Close()
		}
		return nil, nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	asked := &conn{Stream: stream, target: t, asked: true}
	return withNetwork(asked), asked, nil
}

// conn is a multiplexed stream with addresses: that of smux has none.
type conn struct {
	*smux.Stream
	target Target

	// asked reports whether an answer of the far end comes before the first byte.
	asked  bool
	once   sync.Once
	answer error
}

// withNetwork keeps the datagrams of a UDP connection apart.
func withNetwork(c *conn) net.Conn {
	if c.target.Network == UDP {
		return NewDatagrams(c)
	}
	return c
}

// wait reads the answer of the far end.
func (c *conn) wait() error {
	if !c.asked {
		return nil
	}
	c.once.Do(func() {
		answer, err := readText(c.Stream)
		switch {
		case err != nil:
			c.answer = fmt.Errorf("%w: %w", ErrEnded, err)
		case answer != "":
			reason, text, _ := strings.Cut(answer, " ")
			c.answer = &DialError{Reason(reason), text}
		}
	})
	return c.answer
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.wait(); err != nil {
		return 0, err
	}
	return c.Stream.Read(p)
}

func (c *conn) WriteTo(w io.Writer) (int64, error) {
	if err := c.wait(); err != nil {
		return 0, err
	}
	return c.Stream.WriteTo(w)
}

func (c *conn) LocalAddr() net.Addr  { return address{Target{Network: c.target.Network}} }
func (c *conn) RemoteAddr() net.Addr { return address{c.target} }

// address is a target as a net.Addr.
type address struct{ Target }

func (a address) Network() string { return a.Target.Network }
func (a address) String() string {
	_, text, _ := strings.Cut(a.Target.String(), " ")
	return text
}
