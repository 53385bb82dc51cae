package tunnel

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A joined connection that has been closed in one direction is closed in the other if nothing
// comes there for lingering: a multiplexed stream does not say that its end has gone away. One
// of datagrams is never closed by an end, and is closed if it is idle.
const (
	lingering = 10 * time.Minute
	idle      = 2 * time.Minute
)

// Join copies between two connections until both directions have ended, and closes both.
func Join(a, b net.Conn) {
	join(a, b, 0, lingering, func(to io.Writer, from io.Reader) error {
		_, err := io.Copy(to, from)
		return err
	})
}

// JoinDatagrams is Join for connections of datagrams.
func JoinDatagrams(a, b net.Conn) { join(a, b, idle, idle, copyDatagrams) }

// join closes both connections if nothing comes for open, or for half after one direction has
// ended. 0 is for ever.
func join(a, b net.Conn, open, half time.Duration, copyAll func(io.Writer, io.Reader) error) {
	var moved atomic.Int64
	var ended atomic.Bool
	closeBoth := func() {
		a.Close()
		b.Close()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var group sync.WaitGroup
		for _, way := range [2][2]net.Conn{{a, b}, {b, a}} {
			group.Go(func() {
				err := copyAll(counting{way[1], &moved}, way[0])
				ended.Store(true)
				if err != nil || !closeWrite(way[1]) {
					closeBoth()
				}
			})
		}
		group.Wait()
	}()
	last, since := int64(-1), time.Now()
	tick := time.NewTicker(half / 10)
	defer tick.Stop()
	for {
		select {
		case <-done:
			closeBoth()
			return
		case <-tick.C:
		}
		limit := open
		if ended.Load() {
			limit = half
		}
		if now := moved.Load(); now != last || limit == 0 {
			last, since = now, time.Now()
		} else if time.Since(since) > limit {
			closeBoth()
		}
	}
}

// closeWrite ends one direction, and reports whether the connection can do that.
func closeWrite(c net.Conn) bool {
	half, ok := c.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}

// counting is a writer that counts what it writes.
type counting struct {
	io.Writer
	moved *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.moved.Add(int64(n) + 1)
	return n, err
}

// copyDatagrams copies until the source ends or fails: each read is one write.
func copyDatagrams(to io.Writer, from io.Reader) error {
	buffer := make([]byte, MaxDatagram)
	for {
		n, err := from.Read(buffer)
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			return err
		}
	}
}
