package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/labtest"
)

// Actor does to a lab what events say.
type Actor interface {
	// Link changes the quality of an end of a link, and of its peer with both. The function that
	// is returned restores what was there before; it may be there with an error.
	Link(ctx context.Context, end string, both bool, change Change) (undo func(context.Context) error, err error)
	// Node stops, starts or restarts nodes, and waits until they have.
	Node(ctx context.Context, nodes []string, do string) error
	// Worker cordons, uncordons or drains a worker.
	Worker(ctx context.Context, worker, do string) error
}

// Change returns the quality of an end of a link after an event. declared is the impairment that
// the policy declares for it, nil for none.
type Change func(declared *contract.Impairment, now contract.Quality) contract.Quality

const (
	// settling is how long probes run before the scenario begins.
	settling = time.Second
	// pingEvery is the resolution of a probe, mostPings how often it pings at most: a long
	// scenario has a coarser one.
	pingEvery = 20 * time.Millisecond
	mostPings = 10_000
	// recovery is how long taking back each step may take, and reaching how long the way back
	// does. Commands have leastCommand, and the rest of the scenario if that is longer.
	recovery     = 5 * time.Minute
	reaching     = 30 * time.Second
	leastCommand = 10 * time.Second
)

// Run runs a scenario. tell is called with what happens, as it happens. What was done is taken
// back before it returns, also if ctx is done.
func (p *Plan) Run(ctx context.Context, actor Actor, tell func(Record)) (*Report, error) {
	r := &runner{Plan: p, actor: actor, tell: tell, stopped: map[string]bool{}, cordoned: map[string]bool{}}
	for _, name := range p.lab.Stopped {
		r.stopped[name] = true
	}
	for _, name := range p.lab.Cordoned {
		r.cordoned[name] = true
	}
	if err := r.reached(ctx, reaching); err != nil {
		return nil, fmt.Errorf("before the scenario: %w", err)
	}
	probes := make([]measured, len(p.Probes))
	var group sync.WaitGroup
	for i := range p.Probes {
		group.Go(func() { probes[i] = r.probe(ctx, &p.Probes[i]) })
	}
	if len(p.Probes) > 0 {
		wait(ctx, settling)
	}
	r.began = time.Now()
	r.events(ctx)
	wait(ctx, time.Until(r.began.Add(p.Length)))
	group.Wait()
	r.takeBack(context.WithoutCancel(ctx))
	return r.report(probes), ctx.Err()
}

// runner is a scenario that runs.
type runner struct {
	*Plan
	actor Actor
	tell  func(Record)
	began time.Time

	mu      sync.Mutex
	records []Record
	undo    []*undoing
	// What is so now: only what a step changes is taken back.
	stopped, cordoned map[string]bool
}

// undoing takes a step back.
type undoing struct {
	step *Step
	run  func(context.Context) error
}

// remember keeps what takes a step back. One that is kept makes what was done to the same before
// final.
func (r *runner) remember(s *Step, undo func(context.Context) error, failed bool) *undoing {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Event.Keep {
		if !failed {
			r.undo = slices.DeleteFunc(r.undo, func(u *undoing) bool {
				return u.step.Field == s.Field && s.Field != "exec" && !slices.ContainsFunc(u.step.Target, func(t string) bool { return !slices.Contains(s.Target, t) })
			})
		}
		return nil
	}
	if undo == nil {
		return nil
	}
	u := &undoing{s, undo}
	r.undo = append(r.undo, u)
	return u
}

// take returns whether a step is still to be taken back, and forgets it.
func (r *runner) take(u *undoing) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.undo, u)
	if u == nil || i < 0 {
		return false
	}
	r.undo = slices.Delete(r.undo, i, i+1)
	return true
}

// change sets what is so for those names for which it is not so yet, and returns them.
func (r *runner) change(state map[string]bool, names []string, to bool) (changed []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if state[name] != to {
			state[name] = to
			changed = append(changed, name)
		}
	}
	return changed
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (r *runner) record(rec Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records = append(r.records, rec)
	r.tell(rec)
}

// events starts each step at its time, and waits for all of them.
func (r *runner) events(ctx context.Context) {
	var group sync.WaitGroup
	for i := range r.Steps {
		s := &r.Steps[i]
		wait(ctx, time.Until(r.began.Add(s.At)))
		if ctx.Err() != nil {
			break
		}
		group.Go(func() { r.step(ctx, s) })
	}
	group.Wait()
}

// step does what a step says, and takes it back after its time.
func (r *runner) step(ctx context.Context, s *Step) {
	began := time.Now()
	rec := Record{At: began.Sub(r.began).Seconds(), Planned: s.At.Seconds(), Event: s.Text, State: Done, Source: s.Source}
	detail, undo, err := r.act(ctx, s)
	rec.Seconds, rec.Detail = time.Since(began).Seconds(), detail
	if err != nil {
		rec.State, rec.Detail = Failed, err.Error()
	}
	r.record(rec)
	back := r.remember(s, undo, err != nil)
	length := time.Duration(s.Event.For)
	if length == 0 || err != nil || s.At+length > r.Length {
		return // it is taken back with the rest
	}
	wait(ctx, time.Until(began.Add(length)))
	if ctx.Err() == nil {
		r.end(ctx, s, s.At+length, back)
	}
}

// end takes a step back after its time. The sidecars do that for links.
func (r *runner) end(ctx context.Context, s *Step, planned time.Duration, back *undoing) {
	began := time.Now()
	rec := Record{At: began.Sub(r.began).Seconds(), Planned: planned.Seconds(), Event: "end of " + s.Text, State: Done, Source: s.Source}
	if s.Field != "link" && r.take(back) {
		if err := back.run(ctx); err != nil {
			rec.State, rec.Detail = Failed, err.Error()
			r.remember(s, back.run, true) // and tried again in the end
		}
		rec.Seconds = time.Since(began).Seconds()
	}
	r.record(rec)
}

// act does what a step says. It returns what takes it back, also with an error.
func (r *runner) act(ctx context.Context, s *Step) (detail string, undo func(context.Context) error, err error) {
	switch s.Field {
	case "link":
		return r.links(ctx, s)
	case "node":
		if s.Event.Do == DoRestart {
			return "", nil, r.actor.Node(ctx, s.Target, s.Event.Do)
		}
		back := map[string]string{DoStop: DoStart, DoStart: DoStop}[s.Event.Do]
		if changed := r.change(r.stopped, s.Target, s.Event.Do == DoStop); len(changed) > 0 {
			undo = func(ctx context.Context) error {
				r.change(r.stopped, changed, back == DoStop)
				return r.actor.Node(ctx, changed, back)
			}
		}
		return "", undo, r.actor.Node(ctx, s.Target, s.Event.Do)
	case "worker":
		return r.workers(ctx, s)
	}
	return r.commands(ctx, s)
}

func (r *runner) links(ctx context.Context, s *Step) (string, func(context.Context) error, error) {
	change, err := r.quality(s, time.Now(), r.Length-s.At)
	if err != nil {
		return "", nil, err
	}
	both := s.Event.Both || s.Event.Do == DoUp // either end may have taken the link down
	var undo []func(context.Context) error
	for _, end := range s.Target {
		back, failed := r.actor.Link(ctx, end, both, change)
		if back != nil {
			undo = append(undo, back)
		}
		err = cmp.Or(err, failed)
	}
	return "", backwards(undo), err
}

func (r *runner) workers(ctx context.Context, s *Step) (string, func(context.Context) error, error) {
	back := DoUncordon
	if s.Event.Do == DoUncordon {
		back = DoCordon
	}
	var undo []func(context.Context) error
	var err error
	for _, worker := range s.Target {
		failed := r.actor.Worker(ctx, worker, s.Event.Do)
		if failed == nil || s.Event.Do == DoDrain {
			if len(r.change(r.cordoned, []string{worker}, s.Event.Do != DoUncordon)) > 0 {
				undo = append(undo, func(ctx context.Context) error {
					r.change(r.cordoned, []string{worker}, back == DoCordon)
					return r.actor.Worker(ctx, worker, back)
				})
			}
		}
		err = cmp.Or(err, failed)
	}
	return "", backwards(undo), err
}

func (r *runner) commands(ctx context.Context, s *Step) (string, func(context.Context) error, error) {
	run := func(ctx context.Context, argv labtest.Argv) (details []string, err error) {
		for _, name := range s.Target {
			i := slices.IndexFunc(r.lab.Nodes, func(n labtest.Node) bool { return n.Name == name })
			out, failed := r.lab.Exec(ctx, r.lab.Nodes[i], argv)
			line := firstLine(out.Out, out.Err)
			switch {
			case failed != nil:
				err = errors.Join(err, failed)
			case out.Code != 0:
				err = errors.Join(err, fmt.Errorf("the command in %s failed with exit code %d: %s", name, out.Code, line))
			case line != "":
				details = append(details, name+": "+line)
			}
		}
		return details, err
	}
	var undo func(context.Context) error
	if len(s.Event.Undo) > 0 {
		undo = func(ctx context.Context) error { _, err := run(ctx, s.Event.Undo); return err }
	}
	limited, cancel := context.WithTimeout(ctx, max(leastCommand, time.Until(r.began.Add(r.Length))))
	defer cancel()
	details, err := run(limited, s.Event.Command)
	if limited.Err() != nil && ctx.Err() == nil {
		err = errors.New("the command has not ended by the end of the scenario")
	}
	return strings.Join(details, "; "), undo, err
}

// firstLine is the first line of some output, shortened.
func firstLine(texts ...string) string {
	const most = 80
	for _, text := range texts {
		line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		if line = strings.TrimSpace(line); line != "" {
			if runes := []rune(line); len(runes) > most {
				line = string(runes[:most]) + "..."
			}
			return line
		}
	}
	return ""
}

// backwards calls functions in the reverse order, all of them.
func backwards(list []func(context.Context) error) func(context.Context) error {
	if len(list) == 0 {
		return nil
	}
	return func(ctx context.Context) (err error) {
		for _, f := range slices.Backward(list) {
			err = cmp.Or(err, f(ctx))
		}
		return err
	}
}

// takeBack takes back what steps did, the last first, and waits until probes are answered again.
func (r *runner) takeBack(ctx context.Context) {
	began := time.Now()
	var errs []error
	for _, u := range slices.Backward(r.undo) {
		limited, cancel := context.WithTimeout(ctx, recovery) // each: one that hangs does not spend the others' time
		if err := u.run(limited); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", u.step.Text, err))
		}
		cancel()
	}
	if len(r.undo) == 0 && len(r.Probes) == 0 {
		return
	}
	if err := r.reached(ctx, reaching); err != nil {
		errs = append(errs, err)
	}
	rec := Record{At: began.Sub(r.began).Seconds(), Planned: r.Length.Seconds(), Event: "take back", State: Done, Seconds: time.Since(began).Seconds()}
	if err := errors.Join(errs...); err != nil {
		rec.State, rec.Detail = Failed, strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	r.record(rec)
}

// reached waits until all probes are answered.
func (r *runner) reached(ctx context.Context, patience time.Duration) error {
	until := time.Now().Add(patience)
	for i := range r.Probes {
		p := &r.Probes[i]
		for {
			m, err := r.lab.Measure(ctx, r.pod(p), contract.MeasureRequest{Pings: []contract.PingRequest{{To: p.To.Addr, Device: p.Device}}})
			if err == nil && (len(m.Pings) != 1 || m.Pings[0].Received == 0) {
				err = fmt.Errorf("%s does not reach %s", p.From, p.To)
			}
			if err == nil {
				break
			}
			if ctx.Err() != nil || time.Now().After(until) {
				return err
			}
			wait(ctx, 300*time.Millisecond)
		}
	}
	return nil
}

func (r *runner) pod(p *Probe) string {
	i := slices.IndexFunc(r.lab.Nodes, func(n labtest.Node) bool { return n.Name == p.From })
	return r.lab.Nodes[i].Pod
}

// measured is the result of a probe.
type measured struct {
	result contract.PingResult
	began  time.Time
	err    error
}

// probe pings throughout the scenario.
func (r *runner) probe(ctx context.Context, p *Probe) measured {
	length := settling + r.Length
	every := max(pingEvery, (length/mostPings).Round(time.Millisecond)+time.Millisecond)
	if length/pingEvery <= mostPings {
		every = pingEvery
	}
	m, err := r.lab.Measure(ctx, r.pod(p), contract.MeasureRequest{Pings: []contract.PingRequest{{
		To: p.To.Addr, Device: p.Device, Count: int(length / every), IntervalMS: int(every.Milliseconds()), TimeoutMS: 1000,
	}}})
	ended := time.Now()
	switch {
	case err != nil:
		return measured{err: err}
	case len(m.Pings) != 1:
		return measured{err: errors.New("the sidecar has not answered")}
	}
	// The clock of the worker may be another: the beginning follows from the end.
	return measured{result: m.Pings[0], began: ended.Add(-time.Duration(m.Pings[0].TookMS) * time.Millisecond)}
}
