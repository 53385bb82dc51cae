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
	session, err := smux.Client(ending{stream, c.end}, settings(nearWindow, nearBuffer))
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

// Dial asks the far end for a connection. The error wraps ErrEnded if the stream has ended, and
// is a *DialError if the far end could not connect. A UDP connection keeps datagrams apart.
func (c *Client) Dial(ctx context.Context, t Target) (net.Conn, error) {
	stream, err := c.session.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err = writeText(stream, t.String())
	answer := ""
	if err == nil {
		answer, err = readText(stream)
	}
	switch {
	case err == nil && answer == "" && stop():
		return newConn(stream, t), nil
	case err == nil && answer != "":
		reason, text, _ := strings.Cut(answer, " ")
		err = &DialError{Reason(reason), text}
	case ctx.Err() != nil:
		err = ctx.Err()
	default:
		err = fmt.Errorf("%w: %w", ErrEnded, err)
	}
	stream.Close()
	return nil, err
}

// conn is a multiplexed stream with addresses: that of smux has none.
type conn struct {
	*smux.Stream
	target Target
}

func newConn(s *smux.Stream, t Target) net.Conn {
	if t.Network == UDP {
		return NewDatagrams(conn{s, t})
	}
	return conn{s, t}
}

func (c conn) LocalAddr() net.Addr  { return address{Target{Network: c.target.Network}} }
func (c conn) RemoteAddr() net.Addr { return address{c.target} }

// address is a target as a net.Addr.
type address struct{ Target }

func (a address) Network() string { return a.Target.Network }
func (a address) String() string {
	_, text, _ := strings.Cut(a.Target.String(), " ")
	return text
}
