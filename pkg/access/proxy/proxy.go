// Package proxy is a proxy into a lab: SOCKS5 and HTTP, with CONNECT, on one port. It passes on
// only what its dialler takes.
package proxy

import (
	"bufio"
	"context"
	"errors"
	"net"
	"time"

	"github.com/c9s-lab/c9s/internal/accept"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// Dial connects to a host and port as a client of the proxy names them. The text of a
// *tunnel.DialError reaches the client.
type Dial func(ctx context.Context, host string, port uint16) (net.Conn, error)

const (
	// maxConnections bounds the clients.
	maxConnections = 1024
	// requestTime is how long a client may take to say what it wants.
	requestTime = 30 * time.Second
)

// Serve serves clients until ctx is done, and closes the listener.
func Serve(ctx context.Context, l net.Listener, dial Dial) {
	web := newWeb(dial)
	defer web.close()
	accept.Each(ctx, l, maxConnections, func(client net.Conn) {
		defer context.AfterFunc(ctx, func() { client.Close() })()
		serve(ctx, client, dial, web)
	})
}

// serve tells the protocols apart by the first byte: no HTTP method begins with SOCKS' 5.
func serve(ctx context.Context, client net.Conn, dial Dial, web *web) {
	_ = client.SetDeadline(time.Now().Add(requestTime))
	buffered := &peeked{Conn: client, r: bufio.NewReader(client)}
	first, err := buffered.r.Peek(1)
	if err != nil {
		return
	}
	if first[0] == socksVersion {
		socks(ctx, buffered, dial)
	} else {
		web.serve(buffered)
	}
}

// peeked is a connection of which some bytes have been read already.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// CloseWrite ends the direction to the client.
func (p *peeked) CloseWrite() error {
	half, ok := p.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// join passes bytes between a client and a node until both have ended.
func join(client *peeked, node net.Conn) {
	defer node.Close()
	_ = client.SetDeadline(time.Time{})
	tunnel.Join(client, node)
}
