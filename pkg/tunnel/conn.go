package tunnel

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/xtaci/smux"
)

// conn is a multiplexed stream with addresses: that of smux has none.
type conn struct {
	*smux.Stream
	target Target
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

// withNetwork keeps the datagrams of a UDP connection apart.
func withNetwork(c net.Conn, t Target) net.Conn {
	if t.Network == UDP {
		return NewDatagrams(c)
	}
	return c
}

// asked is the near end of a connection: the answer of the far end comes before the first byte.
type asked struct {
	conn
	// dead reports whether the answer cannot come any more.
	dead   func() bool
	once   sync.Once
	answer error
}

// wait reads the answer.
func (c *asked) wait() error {
	c.once.Do(func() {
		answer, err := readText(c.Stream)
		switch {
		case err != nil && c.dead():
			c.answer = fmt.Errorf("%w: %w", ErrEnded, err)
		case err != nil:
			c.answer = &DialError{Failed, "the sidecar gave up the connection: " + err.Error()}
		case answer != "":
			reason, text, _ := strings.Cut(answer, " ")
			c.answer = &DialError{Reason(reason), text}
		}
	})
	return c.answer
}

func (c *asked) Read(p []byte) (int, error) {
	if err := c.wait(); err != nil {
		return 0, err
	}
	return c.Stream.Read(p)
}

func (c *asked) WriteTo(w io.Writer) (int64, error) {
	if err := c.wait(); err != nil {
		return 0, err
	}
	return c.Stream.WriteTo(w)
}

// answered is the far end of a connection that is there. Its answer goes with the first bytes of
// the node or, if there are none yet, alone and soon after.
type answered struct {
	conn
	writing sync.Mutex
	owed    []byte // the answer, until it is written
}

// oweTime is how long an answer waits for the first bytes: most programs that are asked answer
// sooner, and each write to the stream costs every process on its way a turn.
const oweTime = 500 * time.Microsecond

// newAnswered returns the far end of a connection that is there.
func newAnswered(c conn) *answered {
	a := &answered{conn: c, owed: textOf("")}
	time.AfterFunc(oweTime, func() { _, _ = a.Write(nil) })
	return a
}

// Write writes the answer that is owed before the bytes.
func (c *answered) Write(p []byte) (int, error) {
	c.writing.Lock()
	if owed := len(c.owed); owed > 0 {
		defer c.writing.Unlock()
		n, err := c.Stream.Write(append(c.owed, p...))
		c.owed = nil
		return max(n-owed, 0), err
	}
	c.writing.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	return c.Stream.Write(p)
}

// CloseWrite ends one direction, after the answer.
func (c *answered) CloseWrite() error {
	if _, err := c.Write(nil); err != nil {
		return err
	}
	return c.Stream.CloseWrite()
}

// Close ends the connection, after the answer: one that the node takes and drops was there.
func (c *answered) Close() error {
	_, _ = c.Write(nil)
	return c.Stream.Close()
}
