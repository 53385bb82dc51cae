package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// The states of an event.
const (
	Done   = "done"
	Failed = "failed"
	Passed = "passed"
)

// Record is what happened at a time.
type Record struct {
	// At is when it began, in seconds since the beginning; Planned is when it was to begin.
	At      float64 `json:"atSeconds"`
	Planned float64 `json:"plannedSeconds"`
	Event   string  `json:"event"`
	State   string  `json:"state"`
	Detail  string  `json:"detail,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	Source  string  `json:"source,omitempty"`
}

// Outage is a time in which an address was not reached.
type Outage struct {
	At      float64 `json:"atSeconds"`
	Seconds float64 `json:"seconds"`
	// After is the last event before.
	After string `json:"after,omitempty"`
}

// ProbeRecord is what a probe measured.
type ProbeRecord struct {
	Name     string `json:"name"`
	From     string `json:"from"`
	To       string `json:"to"`
	Sent     int    `json:"sent"`
	Received int    `json:"received"`
	// Longest is the longest outage, Within the longest that is allowed, 0 for any.
	Longest float64 `json:"longestSeconds"`
	Within  float64 `json:"withinSeconds,omitempty"`
	// Outages are the longest, More is how many there are besides.
	Outages []Outage `json:"outages"`
	More    int      `json:"moreOutages,omitempty"`
	State   string   `json:"state"`
	Detail  string   `json:"detail,omitempty"`
}

// Report is what happened in a scenario.
type Report struct {
	Scenario string        `json:"scenario,omitempty"`
	Lab      string        `json:"lab"`
	Seed     int64         `json:"seed"`
	Began    time.Time     `json:"began"`
	Seconds  float64       `json:"seconds"`
	Events   []Record      `json:"events"`
	Probes   []ProbeRecord `json:"probes"`
	// Failed is how many events and probes failed.
	Failed int `json:"failed"`
}

func (r *runner) report(probes []measured) *Report {
	slices.SortStableFunc(r.records, func(a, b Record) int { return cmp.Compare(a.At, b.At) })
	out := &Report{Scenario: r.Name, Lab: r.lab.Name, Seed: r.Seed, Began: r.began.UTC(), Seconds: time.Since(r.began).Seconds(), Events: r.records, Probes: []ProbeRecord{}}
	if out.Events == nil {
		out.Events = []Record{}
	}
	for _, e := range out.Events {
		if e.State == Failed {
			out.Failed++
		}
	}
	for i, m := range probes {
		p := judge(&r.Probes[i], m, r.began, out.Events)
		if p.State == Failed {
			out.Failed++
		}
		out.Probes = append(out.Probes, p)
	}
	return out
}

// slack is how much earlier than its event an outage may seem to begin.
const slack = 150 * time.Millisecond

// judge describes what a probe measured.
func judge(p *Probe, m measured, began time.Time, events []Record) ProbeRecord {
	out := ProbeRecord{Name: p.Name, From: p.From, To: p.To.String(), Within: time.Duration(p.Within).Seconds(), Outages: []Outage{}, State: Passed}
	if m.err != nil {
		out.State, out.Detail = Failed, m.err.Error()
		return out
	}
	out.Sent, out.Received = m.result.Sent, m.result.Received
	out.Longest = (time.Duration(m.result.LongestMS) * time.Millisecond).Seconds()
	out.More = m.result.MoreOutages
	for _, o := range m.result.Outages {
		at := m.began.Add(time.Duration(o.AtMS) * time.Millisecond).Sub(began)
		outage := Outage{At: at.Seconds(), Seconds: (time.Duration(o.LengthMS) * time.Millisecond).Seconds()}
		for _, e := range events {
			if e.At <= (at + slack).Seconds() {
				outage.After = e.Event
			}
		}
		out.Outages = append(out.Outages, outage)
	}
	switch {
	case m.result.Error != "":
		out.State, out.Detail = Failed, m.result.Error
	case p.Within > 0 && out.Longest > out.Within:
		out.State, out.Detail = Failed, fmt.Sprintf("unreachable for %s, allowed are %s", seconds(out.Longest), time.Duration(p.Within))
	}
	return out
}

func seconds(s float64) string {
	return (time.Duration(s * float64(time.Second))).Round(time.Millisecond).String()
}
