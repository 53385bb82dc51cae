package labtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/c9s-lab/c9s/internal/bounded"
)

// The states of a result.
const (
	Passed  = "passed"
	Failed  = "failed"
	Warning = "warning"
)

// Result is what became of one case.
type Result struct {
	// Group is the sort of the check: links, reachability and so on.
	Group string `json:"group"`
	Name  string `json:"name"`
	State string `json:"state"`
	// Detail says why it failed, or what was measured.
	Detail   string  `json:"detail,omitempty"`
	Seconds  float64 `json:"seconds"`
	Attempts int     `json:"attempts"`
	// Source is where the file of tests has the check.
	Source string `json:"source,omitempty"`
}

// outcome is what one attempt says of one case.
type outcome struct {
	err error
	// detail is for a case that passed.
	detail string
	// skip is set for a case that turned out not to be one.
	skip bool
}

// doubt is the error of a case that could not be tested. Such a case is a warning.
type doubt struct{ error }

func (d doubt) Unwrap() error { return d.error }

// step is a check with its cases, which are tried together: all must pass in one attempt.
type step struct {
	group   string
	cases   []string
	source  string
	warning bool
	timeout time.Duration
	// alone: nothing else runs meanwhile, and it is tried once.
	alone bool
	try   func(ctx context.Context) []outcome
}

// Tests are the checks for a lab.
type Tests struct {
	steps []*step
	// Interval is the time between two attempts (default 1s).
	Interval time.Duration
}

// Cases returns the names of all cases as GROUP/NAME.
func (t *Tests) Cases() []string {
	var out []string
	for _, s := range t.steps {
		for _, name := range s.cases {
			out = append(out, s.group+"/"+name)
		}
	}
	return out
}

// atOnce is how many checks run at the same time.
const atOnce = 8

// Run runs the checks, each until it passes or its time is up. tell is called with each result.
func (t *Tests) Run(ctx context.Context, tell func(Result)) []Result {
	if t.Interval == 0 {
		t.Interval = time.Second
	}
	results := make([][]Result, len(t.steps))
	together, alone := []int{}, []int{}
	for i, s := range t.steps {
		if s.alone {
			alone = append(alone, i)
		} else {
			together = append(together, i)
		}
	}
	told := make(chan Result)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for r := range told {
			tell(r)
		}
	}()
	run := func(i int) {
		results[i] = t.run(ctx, t.steps[i])
		for _, r := range results[i] {
			told <- r
		}
	}
	bounded.Each(len(together), atOnce, func(i int) { run(together[i]) })
	for _, i := range alone {
		run(i)
	}
	close(told)
	<-done
	return slices.Concat(results...)
}

// run runs one check.
func (t *Tests) run(ctx context.Context, s *step) []Result {
	began := time.Now()
	until := began.Add(s.timeout)
	var outcomes []outcome
	attempts := 0
	for {
		attempts++
		limit := until
		if attempts == 1 || s.alone { // one attempt has time in any case
			limit = time.Now().Add(max(s.timeout, shortest))
		}
		attempt, cancel := context.WithDeadline(ctx, limit)
		latest := s.try(attempt)
		if attempts == 1 || attempt.Err() == nil { // one that was cut off says less than the one before
			outcomes = latest
		}
		cancel()
		if s.alone || ctx.Err() != nil || settled(outcomes) || time.Now().Add(t.Interval).After(until) {
			break
		}
		select {
		case <-time.After(t.Interval):
		case <-ctx.Done():
		}
	}
	var out []Result
	for i, name := range s.cases {
		if outcomes[i].skip {
			continue
		}
		r := Result{Group: s.group, Name: name, State: Passed, Detail: outcomes[i].detail, Seconds: time.Since(began).Seconds(), Attempts: attempts, Source: s.source}
		if err := outcomes[i].err; err != nil {
			r.State, r.Detail = Failed, err.Error()
			if s.warning || errors.As(err, &doubt{}) {
				r.State = Warning
			}
		}
		out = append(out, r)
	}
	return out
}

// shortest is the least time that an attempt has.
const shortest = 15 * time.Second

// settled reports whether no case can change by another attempt.
func settled(outcomes []outcome) bool {
	return !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.err != nil && !errors.As(o.err, &doubt{}) })
}

// all returns the same outcome for each of some cases.
func all(n int, err error) []outcome {
	out := make([]outcome, n)
	for i := range out {
		out[i].err = err
	}
	return out
}

// Count returns the numbers of results of each state.
func Count(results []Result) (passed, failed, warnings int) {
	for _, r := range results {
		switch r.State {
		case Passed:
			passed++
		case Failed:
			failed++
		case Warning:
			warnings++
		}
	}
	return passed, failed, warnings
}
