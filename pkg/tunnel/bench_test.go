package tunnel

import (
	"context"
	"io"
	"net"
	"testing"
)

// dialled is a connection over a stream in memory to a node for which far acts.
func dialled(b *testing.B, far func(node io.ReadWriter)) net.Conn {
	near, server := halves()
	go func() {
		_ = Serve(b.Context(), server, func(context.Context, Target) (net.Conn, error) {
			x, y := halves()
			go far(y)
			return x, nil
		}, generous)
	}()
	c, err := NewClient(near)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	conn, err := c.Dial(b.Context(), Target{Network: TCP, Port: 1})
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// BenchmarkDownload is what one connection carries towards the near end, over a stream in
// memory.
func BenchmarkDownload(b *testing.B) {
	conn := dialled(b, func(node io.ReadWriter) { _, _ = io.Copy(node, zeros{}) })
	buffer := make([]byte, 64<<10)
	b.SetBytes(int64(len(buffer)))
	for b.Loop() {
		if _, err := io.ReadFull(conn, buffer); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpload is what one connection carries towards the far end, which has the smaller
// window.
func BenchmarkUpload(b *testing.B) {
	conn := dialled(b, func(node io.ReadWriter) { _, _ = io.Copy(io.Discard, node) })
	buffer := make([]byte, 64<<10)
	b.SetBytes(int64(len(buffer)))
	for b.Loop() {
		if _, err := conn.Write(buffer); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDial is the time to a connection, without the network.
func BenchmarkDial(b *testing.B) {
	near, far := halves()
	go func() { _ = Serve(b.Context(), far, echo, generous) }()
	c, err := NewClient(near)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for b.Loop() {
		conn, err := c.Dial(b.Context(), Target{Network: TCP, Port: 1})
		if err != nil {
			b.Fatal(err)
		}
		conn.Close()
	}
}
