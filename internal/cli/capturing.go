//go:build !nocluster

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/access"
	"github.com/c9s-lab/c9s/pkg/capture"
	"github.com/c9s-lab/c9s/pkg/diag"
)

const (
	// alignPatience is how long frames wait for the first words of all Pods, which align the
	// clocks.
	alignPatience = 3 * time.Second
	// endPatience is how long the sidecars may take for their last words.
	endPatience = 5 * time.Second
	// podRetry is how long a Pod that is not there is waited for before it is tried again.
	podRetry = time.Second
)

// run captures until ctx is done, or c.stop is called.
func (c *capturing) run(ctx context.Context) error {
	// The streams outlive ctx a little: their ends have the counts.
	streams, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var group sync.WaitGroup
	for i := range c.pods {
		group.Go(func() { c.follow(streams, i) })
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	go func() {
		select {
		case <-ctx.Done():
			c.stop()
		case <-c.ended:
		}
		time.AfterFunc(endPatience, cancel)
	}()
	c.consume(done)
	c.merger.Flush()
	if c.file != nil {
		c.failed = errors.Join(c.failed, c.finish())
	}
	return c.failed
}

// follow streams from a Pod, and from the next one where that is replaced.
func (c *capturing) follow(ctx context.Context, i int) {
	for {
		err := c.stream(ctx, i)
		c.records <- podRecord{pod: i, err: err}
		select {
		case <-c.ended:
			return
		case <-time.After(podRetry):
		}
	}
}

// stream runs one capture in a Pod.
func (c *capturing) stream(ctx context.Context, i int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := c.request
	request.Interfaces = c.of[c.pods[i]]
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	input, ask := io.Pipe()
	result, out := io.Pipe()
	var complaint bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		err := c.start(ctx, c.pods[i], input, out, &complaint)
		input.CloseWithError(io.ErrClosedPipe)
		out.Close()
		ended <- err
	}()
	go func() {
		if _, err := ask.Write(append(line, '\n')); err == nil {
			select {
			case <-c.ended:
			case <-ctx.Done():
			}
		}
		ask.Close() // it ends the capture
	}()
	c.records <- podRecord{pod: i, begins: true}
	decoder := capture.NewDecoder(result, len(request.Interfaces))
	for {
		r, err := decoder.Next()
		if err == nil {
			c.records <- podRecord{pod: i, Record: r}
			continue
		}
		cancel()
		result.Close()
		streamed := <-ended
		if text := strings.TrimSpace(complaint.String()); text != "" {
			first, _, _ := strings.Cut(text, "\n")
			return errors.New(first)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if streamed != nil && !errors.Is(streamed, context.Canceled) {
			return streamed
		}
		return err
	}
}

// consume takes what comes from all Pods.
func (c *capturing) consume(done <-chan struct{}) {
	var early []podRecord // before the clocks are aligned
	aligned := false
	patience := time.After(alignPatience)
	flush := time.NewTicker(100 * time.Millisecond)
	defer flush.Stop()
	begin := func() {
		aligned = true
		c.align()
		for _, r := range early { // all of them, before the first frame
			if r.begins {
				c.take(r)
			}
		}
		for _, r := range early {
			if !r.begins {
				c.take(r)
			}
		}
		early = nil
	}
	for {
		select {
		case r := <-c.records:
			switch {
			case aligned:
				c.take(r)
			case r.State != nil:
				c.take(r)
				if len(c.states) == len(c.pods) {
					begin()
				}
			default:
				early = append(early, r)
			}
		case <-patience:
			begin()
		case <-flush.C:
			if aligned {
				c.merger.Advance(time.Now())
			}
			c.keep(c.flush())
		case <-done:
			for len(c.records) > 0 {
				early = append(early, <-c.records)
			}
			begin()
			return
		}
	}
}

func (c *capturing) flush() error {
	if c.file == nil {
		return nil
	}
	if err := c.file.Flush(); err != nil || c.rotate == nil || !c.rotate.due() {
		return err
	}
	return c.nextFile()
}

// nextFile completes the present file, if there is one, and begins the next.
func (c *capturing) nextFile() error {
	if c.file != nil {
		if err := c.finish(); err != nil {
			return err
		}
	}
	file, err := c.rotate.next()
	c.file = file
	return err
}

// keep notes the first error of the outputs, which ends the capture.
func (c *capturing) keep(err error) {
	if err != nil && c.failed == nil {
		c.failed = err
		c.stop()
	}
}

func (c *capturing) take(r podRecord) {
	pod, now := c.pods[r.pod], time.Now()
	switch {
	case r.begins:
		c.merger.Open(r.pod, now)
	case r.Frame != nil:
		r.Frame.Time += int64(c.shifts[pod].Offset)
		c.merger.Add(r.pod, r.Frame, now)
	case r.Tick != 0:
		c.merger.Tick(r.pod, r.Tick+int64(c.shifts[pod].Offset), now)
	case r.State != nil:
		c.state(pod, *r.State)
	default: // the stream has ended
		c.merger.Close(r.pod, now)
		for _, i := range c.of[pod] { // the next sidecar begins at 0
			c.past[i] = c.totals[i]
		}
		_, worked := c.states[pod]
		switch {
		case r.err == nil || errors.Is(r.err, context.Canceled):
		case worked || errors.Is(r.err, access.ErrAway):
			c.tell(pod + ": " + r.err.Error() + "; waiting for it")
		default: // it would fail again
			c.keep(r.err)
		}
	}
}

// tell warns, once for each text.
func (c *capturing) tell(text string) {
	if !c.warned[text] {
		c.warned[text] = true
		c.warn("warning: " + text)
	}
}

func (c *capturing) state(pod string, s capture.State) {
	s.Pod = pod
	c.states[pod] = s
	for n, i := range c.of[pod] {
		now := s.Interfaces[n]
		if now.Error != "" {
			c.tell(i.String() + ": " + now.Error)
		}
		now.Received += c.past[i].Received
		now.Dropped += c.past[i].Dropped
		c.totals[i] = now
	}
	if len(c.shifts) > 0 {
		c.align()
	}
}

// align aligns the clocks of the Pods to that of the first. An alignment is kept until there is
// a better one, or until it is wrong.
func (c *capturing) align() {
	reference := ""
	for _, pod := range c.pods {
		if _, ok := c.states[pod]; ok {
			reference = pod
			break
		}
	}
	if reference == "" {
		return
	}
	for pod, s := range capture.Align(reference, c.states) {
		old, ok := c.shifts[pod]
		wrong := (s.Offset - old.Offset).Abs() > s.Error+old.Error
		if !ok || s.Known && (!old.Known || s.Error < old.Error || wrong) {
			c.shifts[pod] = s
		}
	}
}

// emit writes a frame, which comes in order.
func (c *capturing) emit(pod int, f *capture.Frame) {
	if c.failed != nil || c.count > 0 && c.frames >= c.count {
		return
	}
	c.frames++
	d := c.described(pod, f.Interface)
	if c.file != nil {
		c.keep(c.file.Write(d, f))
	}
	if c.rotate != nil && c.rotate.due() {
		c.keep(c.nextFile())
	}
	if c.line != nil {
		c.keep(c.line(d, f))
	}
	if c.frames == c.count {
		c.stop()
	}
}

func (c *capturing) described(pod, n int) capture.Described {
	name := c.pods[pod]
	i := c.of[name][n]
	return capture.Described{Interface: i, Peer: c.totals[i].Peer, Comment: c.shifts[name].Comment(c.states[name].Worker)}
}

// finish adds the interfaces without a frame, and the counts.
func (c *capturing) finish() error {
	for pod, name := range c.pods {
		for n, i := range c.of[name] {
			if err := c.file.Add(c.described(pod, n)); err != nil {
				return err
			}
			c.file.Count(i, c.totals[i].Received, c.totals[i].Dropped)
		}
	}
	return c.file.Close(time.Now())
}

// summary prints what was captured, and what was dropped.
func (c *capturing) summary(w io.Writer) {
	var dropped uint64
	for _, pod := range c.pods {
		for _, i := range c.of[pod] {
			t := c.totals[i]
			dropped += t.Dropped
			if t.Dropped > 0 {
				fmt.Fprintf(w, "%s: %d of %d frames were dropped, because they came faster than they could be sent\n", i, t.Dropped, t.Received)
			}
		}
	}
	fmt.Fprintf(w, "%s captured, %d dropped\n", diag.Count(int(c.frames), "frame"), dropped)
}
