package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/c9s-lab/c9s/pkg/tunnel"
)

// node answers connections with what they send, in memory.
func node(_ context.Context, first []byte) (net.Conn, error) {
	a, b := net.Pipe()
	go func() {
		if len(first) > 0 {
			_, _ = b.Write(first)
		}
		buffer := make([]byte, tunnel.MaxDatagram)
		for {
			n, err := b.Read(buffer)
			if err != nil {
				b.Close()
				return
			}
			if _, err := b.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	return a, nil
}

// counter keeps what Events report.
type counter struct {
	open, most atomic.Int64
	mu         sync.Mutex
	errs       []error
}

func (c *counter) events() Events {
	return Events{
		Open: func(change int) {
			if now := c.open.Add(int64(change)); now > c.most.Load() {
				c.most.Store(now)
			}
		},
		Failed: func(err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.errs = append(c.errs, err)
		},
	}
}

func (c *counter) failed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.errs)
}

func TestTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var seen counter
	var refuse atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		TCP(ctx, l, func(ctx context.Context, first []byte) (net.Conn, error) {
			if refuse.Load() {
				return nil, errors.New("refused")
			}
			return node(ctx, first)
		}, seen.events())
	}()
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		message := bytes.Repeat([]byte("x"), 5000)
		if _, err := c.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, len(message))); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if n := seen.open.Load(); n != 3 {
		t.Errorf("%d connections are open, want 3", n)
	}
	refuse.Store(true)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || seen.failed() != 1 {
		t.Errorf("a connection that the node refuses: %v, %d failures", err, seen.failed())
	}
	cancel()
	<-done
	if n := seen.open.Load(); n != 0 {
		t.Errorf("%d connections are open after the end", n)
	}
}

// Each sender gets its own answers, over a connection of its own.
func TestUDP(t *testing.T) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var seen counter
	done := make(chan struct{})
	go func() {
		defer close(done)
		UDP(ctx, socket, node, seen.events())
	}()
	buffer := make([]byte, tunnel.MaxDatagram)
	for i := range 3 {
		c, err := net.Dial("udp", socket.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, size := range []int{10 + i, 1400, 9000} {
			if _, err := c.Write(bytes.Repeat([]byte{byte(i)}, size)); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			if n, err := c.Read(buffer); err != nil || n != size || buffer[0] != byte(i) {
				t.Errorf("sender %d: %d bytes of %d, %v", i, n, size, err)
			}
		}
	}
	if n := seen.most.Load(); n != 3 {
		t.Errorf("%d connections were open, want 3", n)
	}
	cancel()
	<-done
	if n := seen.open.Load(); n != 0 {
		t.Errorf("%d connections are open after the end", n)
	}
}
