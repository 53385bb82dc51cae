package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// ReachVersion names the shape of Reached in JSON.
const ReachVersion = "c9s.dev/reach/v1"

// Reached is what a Pod reached of two others: one that nothing guards, and one that a
// NetworkPolicy closes.
type Reached struct {
	Version string `json:"version"`
	Open    bool   `json:"open"`
	Closed  bool   `json:"closed"`
}

// How Reach tries: a policy may take some seconds to take effect.
const (
	reachFor     = 20 * time.Second
	reachEvery   = 500 * time.Millisecond
	dialPatience = time.Second
	// So many failures in a row are no accident.
	enough = 3
)

// Serve accepts connections on a TCP port and closes them, until ctx ends.
func Serve(ctx context.Context, port int) error {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	for {
		c, err := l.Accept()
		if err != nil {
			return context.Cause(ctx)
		}
		c.Close()
	}
}

// Reach connects to two addresses ("10.0.0.1:80") until the open one has answered and the
// closed one has not for a while, for at most 20 s. It reports what the last tries found
// that were not cut short.
func Reach(ctx context.Context, open, closed string) Reached {
	ctx, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	r := Reached{Version: ReachVersion}
	failures := 0
	for {
		openAnswers, closedAnswers := connects(ctx, open), connects(ctx, closed)
		if ctx.Err() != nil {
			return r // this try was cut short: it says nothing
		}
		r.Open = r.Open || openAnswers
		r.Closed = closedAnswers
		switch {
		case closedAnswers:
			failures = 0
		case r.Open:
			failures++
		}
		if failures >= enough {
			return r
		}
		select {
		case <-time.After(reachEvery):
		case <-ctx.Done():
			return r
		}
	}
}

func connects(ctx context.Context, address string) bool {
	d := net.Dialer{Timeout: dialPatience}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// Write prints what was reached, and leaves it in file too.
func (r Reached) Write(w io.Writer, file string) error { return write(w, file, r) }

// write prints v as JSON, and leaves it in file too, if that is not "".
func write(w io.Writer, file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if file != "" {
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return fmt.Errorf("leaving the report: %w", err)
		}
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}
