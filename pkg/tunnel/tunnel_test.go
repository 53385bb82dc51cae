package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var generous = Limits{Connections: 600, PerSecond: 1e6, Burst: 1e6, Dial: time.Second}

// ends connects a near and a far end in memory. Connections end in the returned channel.
func ends(t *testing.T, l Limits, dial func(context.Context, Target) (net.Conn, error)) *Client {
	t.Helper()
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(t.Context(), far, dial, l) }()
	c, err := NewClient(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
}

// echo is a far address that answers with what it gets.
func echo(context.Context, Target) (net.Conn, error) {
	a, b := halves()
	go func() {
		_, _ = io.Copy(b, b)
		b.CloseWrite()
	}()
	return a, nil
}

// half is one end of a connection in memory that can be closed in one direction.
type half struct {
	net.Conn
	in  *io.PipeReader
	out *io.PipeWriter
}

func (h half) Read(p []byte) (int, error)  { return h.in.Read(p) }
func (h half) Write(p []byte) (int, error) { return h.out.Write(p) }
func (h half) CloseWrite() error           { return h.out.Close() }
func (h half) Close() error {
	h.in.Close()
	return h.out.Close()
}

func halves() (half, half) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	return half{in: r1, out: w2}, half{in: r2, out: w1}
}

func TestTargets(t *testing.T) {
	for text, ok := range map[string]bool{
		"tcp :22": true, "udp 172.20.20.2:161": true, "tcp [::1]:5000": true,
		"tcp 22": false, "tcp r1:22": false, "sctp :22": false, "tcp :0": false, "tcp :65536": false, "tcp :+22": false,
		"tcp [fe80::1%eth0]:22": false, "": false, "tcp": false,
	} {
		got, err := ParseTarget(text)
		if ok != (err == nil) {
			t.Errorf("%q: %v", text, err)
		}
		if ok && got.String() != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got, err := ParseTarget("tcp [::ffff:10.0.0.1]:22"); err != nil || got.Addr != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("a mapped address is %v, %v", got.Addr, err)
	}
}

// Many connections share the stream. Each carries its bytes, and its end in either direction.
func TestConnections(t *testing.T) {
	c := ends(t, generous, echo)
	var group sync.WaitGroup
	for i := range 500 {
		group.Go(func() {
			conn, err := c.Dial(t.Context(), Target{Network: TCP, Port: uint16(i + 1)})
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			want := make([]byte, 20_000)
			_, _ = rand.Read(want)
			go func() {
				_, _ = conn.Write(want)
				_ = conn.(interface{ CloseWrite() error }).CloseWrite()
			}()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, want) {
				t.Errorf("connection %d: %d bytes of %d, %v", i, len(got), len(want), err)
			}
		})
	}
	group.Wait()
}

// A connection that nobody reads holds back only itself.
func TestUnread(t *testing.T) {
	c := ends(t, generous, func(ctx context.Context, to Target) (net.Conn, error) {
		if to.Port == 1 {
			a, b := halves()
			go func() { _, _ = io.Copy(b, zeros{}) }()
			return a, nil
		}
		return echo(ctx, to)
	})
	stuck, err := c.Dial(t.Context(), Target{Network: TCP, Port: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	for range 20 {
		conn, err := c.Dial(t.Context(), Target{Network: TCP, Port: 2})
		if err != nil {
			t.Fatal(err)
		}
		message := []byte("still there")
		_, _ = conn.Write(message)
		if _, err := io.ReadFull(conn, message); err != nil || string(message) != "still there" {
			t.Errorf("%q, %v", message, err)
		}
		conn.Close()
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// What the far end says about a connection that is not there reaches the near end.
func TestDialErrors(t *testing.T) {
	c := ends(t, Limits{Connections: 8, PerSecond: 1e6, Burst: 1e6, Dial: 50 * time.Millisecond}, func(ctx context.Context, to Target) (net.Conn, error) {
		switch to.Port {
		case 1:
			return nil, &DialError{Refused, "connection refused"}
		case 2:
			return nil, errors.New("no more sockets" + strings.Repeat(".", 1000))
		case 3:
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("wrapped: %w", &DialError{Denied, "not the node's"})
	})
	for port, want := range map[uint16]DialError{
		1: {Refused, "connection refused"}, 2: {Failed, "no more sockets"}, 3: {TimedOut, "no answer within 50ms"}, 4: {Denied, "not the node's"},
	} {
		_, err := c.Dial(t.Context(), Target{Network: TCP, Port: port})
		var got *DialError
		if !errors.As(err, &got) || got.Reason != want.Reason || !strings.HasPrefix(got.Text, want.Text) {
			t.Errorf("port %d: %v, want %+v", port, err, want)
		}
	}
}

// The far end has a limit of connections, and of dials in a second.
func TestLimits(t *testing.T) {
	c := ends(t, Limits{Connections: 3, PerSecond: 1e6, Burst: 1e6, Dial: time.Second}, echo)
	var open []net.Conn
	for range 3 {
		conn, err := c.Dial(t.Context(), Target{Network: TCP, Port: 1})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
	}
	_, err := c.Dial(t.Context(), Target{Network: TCP, Port: 1})
	var busy *DialError
	if !errors.As(err, &busy) || busy.Reason != Busy {
		t.Errorf("a fourth connection: %v", err)
	}
	open[0].Close()
	deadline := time.Now().Add(10 * time.Second)
	for {
		conn, err := c.Dial(t.Context(), Target{Network: TCP, Port: 1})
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after one has closed: %v", err)
		}
	}
}

// After a burst, dials are let through at the rate, and no faster.
func TestRate(t *testing.T) {
	var dials atomic.Int32
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), far, func(context.Context, Target) (net.Conn, error) {
			dials.Add(1)
			return nil, &DialError{Refused, "no"}
		}, Limits{Connections: 100, PerSecond: 20, Burst: 5, Dial: time.Minute})
	}()
	c, err := NewClient(near)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 40 {
		go func() { _, _ = c.Dial(t.Context(), Target{Network: TCP, Port: 1}) }()
	}
	for dials.Load() < 15 {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%d dials in %s", dials.Load(), time.Since(began))
		}
		time.Sleep(5 * time.Millisecond)
	}
	if took := time.Since(began); took < 450*time.Millisecond {
		t.Errorf("15 dials took %s: after a burst of 5 it is to be 20 a second", took)
	}
	c.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Datagrams stay apart, empty and long ones too.
func TestDatagrams(t *testing.T) {
	c := ends(t, generous, func(context.Context, Target) (net.Conn, error) {
		a, b := net.Pipe() // a write is a read there, as of datagrams
		go func() {
			buffer := make([]byte, MaxDatagram)
			for {
				n, err := b.Read(buffer)
				if err != nil {
					return
				}
				if _, err := b.Write(buffer[:n]); err != nil {
					return
				}
			}
		}()
		return a, nil
	})
	conn, err := c.Dial(t.Context(), Target{Network: UDP, Port: 161})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	buffer := make([]byte, MaxDatagram)
	for _, size := range []int{1, 1400, 9000, MaxDatagram, 2} {
		if _, err := conn.Write(bytes.Repeat([]byte{byte(size)}, size)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(buffer)
		if err != nil || n != size || buffer[n-1] != byte(size) {
			t.Errorf("a datagram of %d bytes came back with %d, %v", size, n, err)
		}
	}
	_, _ = conn.Write([]byte("cut"))
	_, _ = conn.Write([]byte("whole"))
	if n, err := conn.Read(buffer[:1]); err != nil || string(buffer[:n]) != "c" {
		t.Errorf("%q, %v", buffer[:n], err)
	}
	if n, err := conn.Read(buffer); err != nil || string(buffer[:n]) != "whole" {
		t.Errorf("after one that was cut: %q, %v", buffer[:n], err)
	}
	if _, err := conn.Write(make([]byte, MaxDatagram+1)); err == nil {
		t.Error("a datagram of 65,536 bytes was sent")
	}
}

// Only a far end is taken for one.
func TestGreeting(t *testing.T) {
	for _, text := range []string{"", "Usage:\n  c9s-sidecar prepare\n", "c9s.dev/tunnel/v9\n"} {
		near, far := net.Pipe()
		go func() {
			_, _ = io.WriteString(far, text)
			far.Close()
		}()
		if _, err := NewClient(near); !errors.Is(err, ErrGreeting) {
			t.Errorf("%q was taken for a greeting: %v", text, err)
		}
	}
}

// A stream that ends takes its connections with it, at both ends.
func TestStreamEnds(t *testing.T) {
	near, far := net.Pipe()
	closed := make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), far, func(context.Context, Target) (net.Conn, error) {
			a, b := halves()
			go func() {
				_, _ = io.Copy(io.Discard, b)
				close(closed)
			}()
			return a, nil
		}, generous)
	}()
	c, err := NewClient(near)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := c.Dial(t.Context(), Target{Network: TCP, Port: 1})
	if err != nil {
		t.Fatal(err)
	}
	near.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on without its stream")
	}
	<-c.Ended()
	<-closed
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := c.Dial(t.Context(), Target{Network: TCP, Port: 1}); !errors.Is(err, ErrEnded) {
		t.Errorf("a dial after the end: %v", err)
	}
}

// A dial that is given up ends at once.
func TestDialGivenUp(t *testing.T) {
	c := ends(t, Limits{Connections: 1, PerSecond: 1e6, Burst: 1e6, Dial: 200 * time.Millisecond}, func(ctx context.Context, _ Target) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Dial(ctx, Target{Network: TCP, Port: 1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// One direction that has ended is not waited for forever in the other.
func TestLingering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, far := halves()
		b, near := halves()
		done := make(chan struct{})
		began := time.Now()
		go func() {
			Join(a, b)
			close(done)
		}()
		time.Sleep(2 * lingering) // idle, but whole
		near.CloseWrite()
		_, _ = io.Copy(io.Discard, far)
		_, _ = far.Write([]byte("late"))
		_, _ = io.ReadFull(near, make([]byte, 4))
		<-done
		if took := time.Since(began); took < 3*lingering || took > 4*lingering {
			t.Errorf("closed after %s", took)
		}
	})
}

func FuzzTarget(f *testing.F) {
	f.Add("tcp :22")
	f.Add("udp [::1]:161")
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			return
		}
		again, err := ParseTarget(target.String())
		if err != nil || again != target || target.Port == 0 {
			t.Errorf("%q became %v, then %v: %v", text, target, again, err)
		}
	})
}

// A connection that is dialled early takes bytes at once, and says with its first read what Dial
// would say.
func TestDialEarly(t *testing.T) {
	begin := make(chan struct{})
	c := ends(t, generous, func(ctx context.Context, to Target) (net.Conn, error) {
		<-begin
		if to.Port == 9 {
			return nil, &DialError{Refused, "connection refused"}
		}
		return echo(ctx, to)
	})
	conn, err := c.DialEarly(Target{Network: TCP, Port: 1}, []byte("very "))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("early")); err != nil {
		t.Fatal(err)
	}
	refused, err := c.DialEarly(Target{Network: TCP, Port: 9}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	close(begin)
	got := make([]byte, 10)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "very early" {
		t.Errorf("%q, %v", got, err)
	}
	for range 2 {
		var failed *DialError
		if _, err := refused.Read(got); !errors.As(err, &failed) || failed.Reason != Refused {
			t.Errorf("a refused connection: %v", err)
		}
	}
	// Join reports it.
	a, b := halves()
	refused, err = c.DialEarly(Target{Network: TCP, Port: 9}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var failed *DialError
	if err := Join(a, refused); !errors.As(err, &failed) {
		t.Errorf("Join: %v", err)
	}
	b.Close()
}

// A node that takes a connection and drops it ends that connection, and no other.
func TestDropped(t *testing.T) {
	c := ends(t, generous, func(ctx context.Context, to Target) (net.Conn, error) {
		if to.Port != 9 {
			return echo(ctx, to)
		}
		a, b := halves()
		b.out.CloseWithError(errors.New("connection reset by peer"))
		b.in.CloseWithError(errors.New("connection reset by peer"))
		return a, nil
	})
	other, err := c.Dial(t.Context(), Target{Network: TCP, Port: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range 20 {
		conn, err := c.Dial(t.Context(), Target{Network: TCP, Port: 9})
		if err != nil {
			t.Fatalf("a connection that was taken: %v", err)
		}
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, ErrEnded) {
			t.Errorf("it reads %d bytes, %v", n, err)
		}
		conn.Close()
	}
	if _, err := io.WriteString(other, "x"); err != nil {
		t.Errorf("the other one: %v", err)
	}
	if _, err := io.ReadFull(other, make([]byte, 1)); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// What a frame does not need now waits; data, and room that a busy connection needs, do not.
func TestCanWait(t *testing.T) {
	update := func(read byte) []byte { return []byte{2, 4, 8, 0, 1, 0, 0, 0, 0, read, 0, 0, 0, 0, 4, 0} }
	for name, c := range map[string]struct {
		frame []byte
		want  bool
	}{
		"begin": {[]byte{2, 0, 0, 0, 1, 0, 0, 0}, true}, "end": {[]byte{2, 1, 0, 0, 1, 0, 0, 0}, true}, "keepalive": {[]byte{2, 3, 0, 0, 1, 0, 0, 0}, true},
		"data": {[]byte{2, 2, 1, 0, 1, 0, 0, 0, 7}, false}, "no frame": {[]byte{2, 0}, false},
		"the first room": {update(1), true}, "room after much": {update(0x80), false},
	} {
		if got := canWait(c.frame); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Small writes become few large ones, in order, and nothing is lost.
func TestBatch(t *testing.T) {
	r, w := io.Pipe()
	b := newBatch(half{out: w})
	go func() {
		for i := range 10_000 {
			if _, err := b.WriteBuffers([][]byte{{byte(i)}, {byte(i >> 8)}}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	reads := 0
	got := make([]byte, 0, 20_000)
	buffer := make([]byte, batchSize)
	for len(got) < 20_000 {
		n, err := r.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		got, reads = append(got, buffer[:n]...), reads+1
	}
	for i := range 10_000 {
		if got[2*i] != byte(i) || got[2*i+1] != byte(i>>8) {
			t.Fatalf("write %d arrived as %v", i, got[2*i:2*i+2])
		}
	}
	if reads > 5000 {
		t.Errorf("10,000 writes became %d", reads)
	}
	r.Close()
	for until := time.Now().Add(10 * time.Second); ; {
		if _, err := b.Write([]byte("x")); err != nil {
			break
		}
		if time.Now().After(until) {
			t.Fatal("writes to a stream that is closed succeed")
		}
	}
}
