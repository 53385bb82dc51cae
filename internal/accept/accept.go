// Package accept serves the connections of a listener, a limited number at a time.
package accept

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Each calls serve for each connection until ctx is done, for at most most of them at a time.
// It closes the listener and the connections, and waits until serve has returned for all.
func Each(ctx context.Context, l net.Listener, most int, serve func(net.Conn)) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	defer l.Close()
	seats := make(chan struct{}, most)
	var group sync.WaitGroup
	defer group.Wait()
	for {
		seats <- struct{}{}
		conn, err := l.Accept()
		if err != nil {
			<-seats
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors
			continue
		}
		group.Go(func() {
			defer func() { <-seats }()
			defer conn.Close()
			serve(conn)
		})
	}
}
