package labtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
)

const (
	mostWithin = 2 * time.Minute
	// pingEvery is the resolution of convergence times.
	pingEvery = 20 * time.Millisecond
	// before is how long the address is reached before the event, settling how long it has
	// to be reached after the time that is allowed.
	before   = time.Second
	settling = 2 * time.Second
	// recovery is how long the way back may take after the event is undone.
	recovery = time.Minute
)

// convergence adds a check of the time without an answer after an event. It runs alone, since
// the event disturbs other checks.
func (p *planner) convergence(c *Convergence) {
	nodes := p.pingers(c.Pos, []string{c.From})
	if len(nodes) == 0 {
		return
	}
	from := nodes[0]
	if !from.Pingable() {
		p.wrong(c.Pos, "measure from a node of another kind", "convergence cannot be measured from kind %s", kindName(from))
	}
	var fault func(ctx context.Context) (undo func(context.Context) error, err error)
	what := ""
	if c.Event.Cut != "" {
		end, ok := p.end(c.Event.Pos, c.Event.Cut)
		if !ok {
			return
		}
		what = "a cut of " + end.String()
		fault = func(ctx context.Context) (func(context.Context) error, error) {
			return p.lab.Cut(ctx, end.Node, end.Interface)
		}
	} else {
		at := p.running(c.Event.Pos, []string{c.Event.Node})
		if len(at) == 0 {
			return
		}
		what = "a command in " + at[0].Name
		fault = func(ctx context.Context) (func(context.Context) error, error) {
			return p.lab.command(ctx, at[0], c.Event)
		}
	}
	name := label(c.Common, fmt.Sprintf("%s reaches %s within %s after %s", from.Name, c.To, time.Duration(c.Within), what))
	p.add(c.Common, step{group: "convergence", cases: []string{name}, alone: true, try: func(ctx context.Context) []outcome {
		return []outcome{p.lab.converge(ctx, from, c, fault)}
	}})
	// One attempt takes as long as it takes.
	if n := len(p.tests.steps); n > 0 && p.tests.steps[n-1].alone {
		p.tests.steps[n-1].timeout += time.Duration(c.Within) + before + settling + recovery + time.Minute
	}
}

// command runs the command of an event.
func (l *Lab) command(ctx context.Context, n Node, e Event) (undo func(context.Context) error, err error) {
	run := func(ctx context.Context, argv Argv) error {
		if len(argv) == 0 {
			return nil
		}
		out, err := l.Exec(ctx, n, argv)
		if err == nil && out.Code != 0 {
			err = fmt.Errorf("the command in %s failed with exit code %d%s", n.Name, out.Code, because(short(out.Err+out.Out)))
		}
		return err
	}
	return func(ctx context.Context) error { return run(ctx, e.Undo) }, run(ctx, e.Command)
}

// converge pings, causes the event, and measures the longest time without an answer.
func (l *Lab) converge(ctx context.Context, from Node, c *Convergence, fault func(context.Context) (func(context.Context) error, error)) outcome {
	to := []Address{c.To}
	if err := l.reached(ctx, from, to); err != nil {
		return outcome{err: fmt.Errorf("before the event: %w", err)}
	}
	length := before + time.Duration(c.Within) + settling
	type measured struct {
		contract.Measurement
		err error
	}
	result := make(chan measured, 1)
	go func() {
		m, err := l.Measure(ctx, from.Pod, contract.MeasureRequest{Pings: []contract.PingRequest{{
			To: c.To.Addr, Count: int(length / pingEvery), IntervalMS: int(pingEvery.Milliseconds()), TimeoutMS: 1000,
		}}})
		result <- measured{m, err}
	}()
	select {
	case <-time.After(before):
	case <-ctx.Done():
	}
	undo, err := fault(ctx)
	m := <-result
	if undo != nil { // also if ctx has ended
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), recovery)
		defer cancel()
		if failed := undo(ending); failed != nil && err == nil {
			err = fmt.Errorf("undoing the event: %w", failed)
		}
		if failed := l.reached(ending, from, to); failed != nil && err == nil {
			err = fmt.Errorf("after the event was undone: %w", failed)
		}
	}
	switch {
	case err != nil:
		return outcome{err: err}
	case m.err != nil:
		return outcome{err: m.err}
	case len(m.Pings) != 1:
		return outcome{err: errors.New("the sidecar has not answered")}
	}
	return judgeOutage(m.Pings[0], time.Duration(c.Within))
}

func judgeOutage(p contract.PingResult, within time.Duration) outcome {
	outage := time.Duration(p.LongestMS) * time.Millisecond
	switch {
	case p.Error != "":
		return outcome{err: errors.New(p.Error)}
	case !p.LastAnswered:
		return outcome{err: fmt.Errorf("it is not reached again, after %s", outage)}
	case outage > within:
		return outcome{err: fmt.Errorf("it was unreachable for %s", outage)}
	}
	return outcome{detail: fmt.Sprintf("unreachable for %s", outage)}
}

// reached waits until an address answers.
func (l *Lab) reached(ctx context.Context, from Node, to []Address) error {
	for {
		err := l.pings(ctx, from, to, 0, "")[0]
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
