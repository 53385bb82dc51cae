// Package forward passes connections to a local listener on to a node.
package forward

import (
	"context"
	"net"

	"github.com/c9s-lab/c9s/internal/accept"
	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// Dial opens a connection to the node. What has come for it goes with the request.
type Dial func(ctx context.Context, first []byte) (net.Conn, error)

// Events report what happens. Both may be called by several goroutines at a time.
type Events struct {
	// Open is called with 1 and -1 for each connection that begins and ends.
	Open func(change int)
	// Failed is called for each connection that the node does not take.
	Failed func(error)
}

// maxConnections bounds the connections of one listener.
const maxConnections = 512

// TCP passes on connections until ctx is done, and closes the listener.
func TCP(ctx context.Context, l net.Listener, dial Dial, e Events) {
	accept.Each(ctx, l, maxConnections, func(local net.Conn) { passOn(ctx, local, dial, e) })
}

func passOn(ctx context.Context, local net.Conn, dial Dial, e Events) {
	node, err := dial(ctx, tunnel.First(local))
	if err != nil {
		e.Failed(err)
		return
	}
	defer node.Close()
	e.Open(1)
	defer e.Open(-1)
	defer context.AfterFunc(ctx, func() {
		local.Close()
		node.Close()
	})()
	if err := tunnel.Join(local, node); err != nil {
		e.Failed(err)
	}
}
