// Package tunnel carries connections to the addresses of a Pod over one stream of bytes, such
// as that of kubectl exec. The far end dials; the near end asks for it. The package opens no
// sockets and reads no clock but that of its timeouts.
//
// The far end greets with one line. From then on the stream is multiplexed (smux, version 2).
// Each multiplexed stream begins with a request of the near end and an answer of the far end,
// both a length of one byte and as many bytes of text. A request is the target. An empty
// answer means that the connection is there; otherwise the answer is a reason, a space and an
// explanation. Then follow the connection's bytes, or its datagrams with a length each. The near
// end may send them before the answer.
package tunnel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/xtaci/smux"
)

// greeting is the far end's first line.
const greeting = "c9s.dev/tunnel/v1\n"

// Networks of a target.
const (
	TCP = "tcp"
	UDP = "udp"
)

// Target is what a connection leads to.
type Target struct {
	// Network is TCP or UDP.
	Network string
	// Addr is an address of the node. The zero value is its management address.
	Addr netip.Addr
	Port uint16
}

// String returns the target as a request has it: "tcp :22" or "udp 10.0.0.1:161".
func (t Target) String() string {
	host := ""
	if t.Addr.IsValid() {
		host = t.Addr.String()
	}
	return t.Network + " " + net.JoinHostPort(host, strconv.Itoa(int(t.Port)))
}

// ParseTarget is the inverse of String.
func ParseTarget(text string) (Target, error) {
	bad := fmt.Errorf("%.80q is no target", text)
	network, address, _ := strings.Cut(text, " ")
	host, service, err := net.SplitHostPort(address)
	if err != nil || network != TCP && network != UDP {
		return Target{}, bad
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil || port == 0 || strings.HasPrefix(service, "+") {
		return Target{}, bad
	}
	t := Target{Network: network, Port: uint16(port)}
	if host == "" {
		return t, nil
	}
	if t.Addr, err = netip.ParseAddr(host); err != nil || t.Addr.Zone() != "" {
		return Target{}, bad
	}
	t.Addr = t.Addr.Unmap()
	return t, nil
}

// Reason is why a connection is not there.
type Reason string

// The reasons.
const (
	Refused     Reason = "refused"
	TimedOut    Reason = "timeout"
	Unreachable Reason = "unreachable"
	// Denied is for targets that are not the node's own.
	Denied Reason = "denied"
	// Busy is for a far end that has too many connections.
	Busy   Reason = "busy"
	Failed Reason = "failed"
)

// DialError is the far end's answer for a connection that is not there.
type DialError struct {
	Reason Reason
	Text   string
}

func (e *DialError) Error() string { return e.Text }

// reasonOf returns what an error of a dial says, for the answer.
func reasonOf(err error) *DialError {
	var known *DialError
	var timeout net.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &timeout) && timeout.Timeout():
		return &DialError{TimedOut, err.Error()}
	}
	return &DialError{Failed, err.Error()}
}

// maxText is the length of the longest request or answer.
const maxText = 255

// textOf returns the bytes of a request or an answer, cut to what fits.
func textOf(text string) []byte {
	text = text[:min(len(text), maxText)]
	return append([]byte{byte(len(text))}, text...)
}

func writeText(w io.Writer, text string) error {
	_, err := w.Write(textOf(text))
	return err
}

func readText(r io.Reader) (string, error) {
	var size [1]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return "", err
	}
	text := make([]byte, size[0])
	_, err := io.ReadFull(r, text)
	return string(text), err
}

// Windows of one connection, and buffers of all, in bytes. The far end has little memory: it
// shares the sidecar's. A connection that is not read holds back the others of its stream only
// when the buffer is full of such.
const (
	nearWindow = 4 << 20
	nearBuffer = 64 << 20
	farWindow  = 256 << 10
	farBuffer  = 8 << 20
)

// maxFrame is the length of the longest frame, in bytes: the most that its header can say.
const maxFrame = 1<<16 - 1

// Both ends notice within deadAfter that the stream is dead.
const (
	aliveEvery = 5 * time.Second
	deadAfter  = 20 * time.Second
)

func settings(window, buffer int) *smux.Config {
	return &smux.Config{
		Version:           2,
		KeepAliveInterval: aliveEvery,
		KeepAliveTimeout:  deadAfter,
		MaxFrameSize:      maxFrame,
		MaxStreamBuffer:   window,
		MaxReceiveBuffer:  buffer,
	}
}

// ending is a stream that is read by large pieces, and calls a function once it cannot be read
// any more: smux keeps a session whose stream has ended until its next keepalive.
type ending struct {
	io.ReadWriteCloser
	buffer *bufio.Reader
	end    func()
}

// readSize is how many bytes are read at once.
const readSize = 64 << 10

func newEnding(stream io.ReadWriteCloser, end func()) ending {
	return ending{stream, bufio.NewReaderSize(stream, readSize), end}
}

func (e ending) Read(p []byte) (int, error) {
	n, err := e.buffer.Read(p)
	if err != nil {
		e.end()
	}
	return n, err
}
