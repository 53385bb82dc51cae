package hold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/sidecar/nspace"
)

// Own returns the sidecar's network namespace to another process of its container. dir is the
// supervisor's folder.
func Own(dir string) (*nspace.Namespace, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: filepath.Join(dir, contract.HoldSocket), Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("ask for the sidecar's network namespace: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(helloPatience))
	if err := send(c, nil); err != nil {
		return nil, err
	}
	own, err := receive(c)
	if err == nil && own == nil {
		err = errors.New("the supervisor sent none")
	}
	if err != nil {
		return nil, fmt.Errorf("get the sidecar's network namespace: %w", err)
	}
	return own, nil
}

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
