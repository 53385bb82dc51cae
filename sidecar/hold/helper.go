package hold

import (
	"context"
	"net"
	"time"

	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// reconnect is how often a helper tries to find a supervisor that is gone.
const reconnect = 100 * time.Millisecond

// Keep holds the sidecar's namespace in another container until ctx is done: it takes it
// from the supervisor at the socket, and gives it back to the next supervisor.
func Keep(ctx context.Context, socket string) {
	var held *nspace.Namespace
	for ctx.Err() == nil {
		held = keepOnce(ctx, socket, held)
		select {
		case <-ctx.Done():
		case <-time.After(reconnect):
		}
	}
}

// keepOnce lasts as long as a supervisor does.
func keepOnce(ctx context.Context, socket string, held *nspace.Namespace) *nspace.Namespace {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		return held
	}
	defer context.AfterFunc(ctx, func() { c.Close() })()
	defer c.Close()
	if send(c, held) != nil {
		return held
	}
	got, err := receive(c)
	if err != nil || got == nil {
		return held
	}
	if held != nil {
		held.Close()
	}
	// Nothing more comes but the end.
	_, _ = receive(c)
	return got
}
