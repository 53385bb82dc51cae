package tunnel

import (
	"errors"
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

// Join copies between two connections until both directions have ended, and closes both. The
// error is a *DialError if one of them was dialled early and is not there.
func Join(a, b net.Conn) error { return join(a, b, 0, lingering, copyBytes) }

// JoinDatagrams is Join for connections of datagrams.
func JoinDatagrams(a, b net.Conn) error { return join(a, b, idle, idle, copyDatagrams) }

// join closes both connections if nothing comes for open, or for half after one direction has
// ended. 0 is for ever.
func join(a, b net.Conn, open, half time.Duration, copyAll func(io.Writer, io.Reader) error) error {
	var moved atomic.Int64
	var ended atomic.Bool
	var missing atomic.Pointer[DialError]
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
				if failed := (*DialError)(nil); errors.As(err, &failed) {
					missing.Store(failed)
				}
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
			if failed := missing.Load(); failed != nil {
				return failed
			}
			return nil
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

// leastBuffer is the length of a copy's buffer while little comes, in bytes: most connections
// of a tunnel are quiet.
const leastBuffer = 4 << 10

// copyBytes copies until the source ends or fails.
func copyBytes(to io.Writer, from io.Reader) error {
	switch from.(type) {
	case *asked, *answered: // they have buffers of their own
		_, err := from.(io.WriterTo).WriteTo(to)
		return err
	}
	buffer := make([]byte, leastBuffer)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case n == len(buffer) && n < maxFrame:
			buffer = make([]byte, min(4*n, maxFrame))
		}
	}
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
