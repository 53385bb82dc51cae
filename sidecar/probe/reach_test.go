package probe

import (
	"context"
	"net"
	"testing"
	"time"
)

func TestReach(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := open.Addr().(*net.TCPAddr).Port
	open.Close()
	go func() { served <- Serve(ctx, port) }()
	address := open.Addr().String()
	for end := time.Now().Add(time.Minute); !connects(ctx, address); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server does not listen")
		}
	}
	nobody := "127.0.0.2:" + "9" // nothing listens at the discard port
	if r := Reach(ctx, address, nobody); !r.Open || r.Closed {
		t.Errorf("a closed one: %+v", r)
	}
	short, end := context.WithTimeout(ctx, time.Second)
	defer end()
	if r := Reach(short, address, address); !r.Open || !r.Closed {
		t.Errorf("both open: %+v", r)
	}
	if r := Reach(short, nobody, nobody); r.Open {
		t.Errorf("both closed: %+v", r)
	}
	cancel()
	if err := <-served; err != context.Canceled {
		t.Errorf("Serve ended with %v", err)
	}
}
