package scenario

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/labtest"
)

// fakeLab is a lab whose links are in memory. Its sidecars' pings go unanswered while R1:eth1 is
// down.
type fakeLab struct {
	mu      sync.Mutex
	links   map[string]contract.Quality
	log     []string
	began   time.Time
	broken  bool // nodes cannot be stopped
	outages []contract.PingOutage
}

func (l *fakeLab) say(format string, args ...any) {
	l.log = append(l.log, fmt.Sprintf("%.1f ", time.Since(l.began).Seconds())+fmt.Sprintf(format, args...))
}

func (l *fakeLab) Link(_ context.Context, end string, both bool, change Change) (func(context.Context) error, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.links[end]
	l.links[end] = change(&contract.Impairment{DelayMS: 1}, before)
	l.say("link %s both=%v", end, both)
	return func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.links[end] = before
		l.say("restore %s", end)
		return nil
	}, nil
}

func (l *fakeLab) Node(_ context.Context, nodes []string, do string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.say("%s %s", do, strings.Join(nodes, ","))
	if l.broken {
		return errors.New("no right")
	}
	return nil
}

func (l *fakeLab) Worker(_ context.Context, worker, do string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.say("%s %s", do, worker)
	return nil
}

func (l *fakeLab) lab() *Lab {
	out := &Lab{Lab: &labtest.Lab{Name: "l"}, Stopped: []string{"R9"}, Workers: []string{"n1", "n2"}, Cordoned: []string{"n2"}}
	for _, name := range []string{"R1", "R2", "R3"} {
		out.Nodes = append(out.Nodes, labtest.Node{Name: name, Pod: strings.ToLower(name), Container: true})
	}
	end := func(node, in, alias string) labtest.End { return labtest.End{Node: node, Interface: in, Alias: alias} }
	out.Links = []labtest.Link{{A: end("R1", "eth1", ""), B: end("R2", "eth1", "")}, {A: end("R1", "eth2", "ethernet-1/2"), B: end("R3", "eth1", "")}}
	out.Exec = func(_ context.Context, n labtest.Node, argv []string) (labtest.Output, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.say("exec %s %s", n.Name, strings.Join(argv, " "))
		if argv[0] == "false" {
			return labtest.Output{Code: 1, Err: "it is false\nreally"}, nil
		}
		return labtest.Output{Out: "first\nsecond"}, nil
	}
	out.Measure = func(_ context.Context, _ string, r contract.MeasureRequest) (contract.Measurement, error) {
		ping := r.Pings[0]
		took := time.Duration(max(0, ping.Count)*ping.IntervalMS) * time.Millisecond
		time.Sleep(took)
		result := contract.PingResult{Sent: max(1, ping.Count), Received: max(1, ping.Count), TookMS: int(took.Milliseconds()), LastAnswered: true}
		if ping.Count > 1 {
			result.Outages = l.outages
			for _, o := range l.outages {
				result.LongestMS = max(result.LongestMS, o.LengthMS)
			}
		}
		return contract.Measurement{Pings: []contract.PingResult{result}}, nil
	}
	return out
}

func planOf(t *testing.T, l *fakeLab, text string, seed int64) *Plan {
	t.Helper()
	f, diags := Load("x.yaml", []byte(head+text))
	if f == nil {
		t.Fatal(diags)
	}
	p, diags := Make(f, l.lab(), seed)
	if p == nil {
		t.Fatal(diags)
	}
	return p
}

// TestRun: events happen at their times and are taken back; the report has them and the outages
// that probes measured, each with the event before it.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The probe begins a second before the scenario.
		l := &fakeLab{links: map[string]contract.Quality{}, outages: []contract.PingOutage{{AtMS: 3100, LengthMS: 1200}, {AtMS: 21_000, LengthMS: 40}}}
		p := planOf(t, l, `name: failover
probes:
  - {from: R1, to: 10.0.0.2, within: 1s}
events:
  - {at: 2s, link: "R1:eth1", for: 10s}
  - {at: 5s, node: R2, do: stop, for: 3s}
  - {at: 9s, worker: n1, do: drain}
  - {at: 10s, exec: "R[12]", command: [show]}
  - {at: 11s, exec: R3, command: ["false"], undo: ["true"]}
  - {at: 20s, link: "R1:ethernet-1/2", impair: {loss: 5}, both: true}
`, 7)
		if p.Length != 25*time.Second {
			t.Errorf("the scenario lasts %s", p.Length)
		}
		l.began = time.Now().Add(settling)
		var told []string
		report, err := p.Run(t.Context(), l, func(r Record) { told = append(told, r.Event) })
		if err != nil {
			t.Fatal(err)
		}
		wantLog := []string{
			"2.0 link R1:eth1 both=false", "5.0 stop R2", "8.0 start R2", "9.0 drain n1", "10.0 exec R1 show", "10.0 exec R2 show", "11.0 exec R3 false", "20.0 link R1:eth2 both=true",
			"25.0 restore R1:eth2", "25.0 exec R3 true", "25.0 uncordon n1", "25.0 restore R1:eth1",
		}
		if !slices.Equal(l.log, wantLog) {
			t.Errorf("it did\n%s\nwant\n%s", strings.Join(l.log, "\n"), strings.Join(wantLog, "\n"))
		}
		var events []string
		for _, e := range report.Events {
			events = append(events, fmt.Sprintf("%.1f %s: %s %s", e.At, e.Event, e.State, e.Detail))
		}
		wantEvents := []string{
			"2.0 link R1:eth1 down for 10s: done ", "5.0 node R2 stop for 3s: done ", "8.0 end of node R2 stop for 3s: done ", "9.0 worker n1 drain: done ",
			"10.0 exec in R1, R2: done R1: first; R2: first", "11.0 exec in R3: failed the command in R3 failed with exit code 1: it is false",
			"12.0 end of link R1:eth1 down for 10s: done ", "20.0 link R1:eth2 loss 5%: done ", "25.0 take back: done ",
		}
		if !slices.Equal(events, wantEvents) {
			t.Errorf("events\n%s\nwant\n%s", strings.Join(events, "\n"), strings.Join(wantEvents, "\n"))
		}
		if len(told) != len(events) {
			t.Errorf("told %v", told)
		}
		probe := report.Probes[0]
		want := []Outage{{2.1, 1.2, "link R1:eth1 down for 10s"}, {20, 0.04, "link R1:eth2 loss 5%"}}
		if !reflect.DeepEqual(probe.Outages, want) || probe.State != Failed || probe.Detail != "unreachable for 1.2s, allowed are 1s" || report.Failed != 2 || report.Seed != 7 {
			t.Errorf("%+v; failed %d", probe, report.Failed)
		}
		if len(l.links) != 2 || l.links["R1:eth1"] != (contract.Quality{}) {
			t.Errorf("left: %+v", l.links)
		}
	})
}

// TestRunInterrupted: what was done is taken back if the run is interrupted, and links end by
// themselves if it is killed.
func TestRunInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLab{links: map[string]contract.Quality{}, began: time.Now()}
		p := planOf(t, l, "duration: 30s\nevents:\n  - {at: 1s, link: \"R1:eth1\"}\n  - {at: 2s, node: R2, do: stop}\n  - {at: 20s, node: R3, do: stop}\n", 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go func() {
			time.Sleep(5 * time.Second)
			l.mu.Lock()
			defer l.mu.Unlock()
			if f := l.links["R1:eth1"].Fault; f == nil || f.Length() != 29*time.Second+deadline {
				t.Errorf("the fault is %+v", f)
			}
		}()
		report, err := p.Run(ctx, l, func(Record) {})
		if !errors.Is(err, context.DeadlineExceeded) || report == nil {
			t.Fatalf("%v, %v", report, err)
		}
		want := []string{"1.0 link R1:eth1 both=false", "2.0 stop R2", "10.0 start R2", "10.0 restore R1:eth1"}
		if !slices.Equal(l.log, want) {
			t.Errorf("it did %q, want %q", l.log, want)
		}
	})
}

// TestTakeBack: only what a step changed is taken back, once, and a step that is kept makes final
// what was done to the same before.
func TestTakeBack(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a node that is started again": {"events:\n  - {at: 1s, node: R2, do: stop}\n  - {at: 3s, node: R2, do: start}\n",
			[]string{"1.0 stop R2", "3.0 start R2", "8.0 stop R2", "8.0 start R2"}},
		"a node that runs":                 {"events:\n  - {at: 1s, node: R2, do: start}\n", []string{"1.0 start R2"}},
		"a node that did not run":          {"events:\n  - {at: 1s, node: R9, do: stop}\n", []string{"1.0 stop R9"}},
		"a worker that was cordoned":       {"events:\n  - {at: 1s, worker: n2, do: drain}\n", []string{"1.0 drain n2"}},
		"a worker that was not":            {"events:\n  - {at: 1s, worker: n1, do: cordon}\n", []string{"1.0 cordon n1", "6.0 uncordon n1"}},
		"a command with a time":            {"events:\n  - {at: 1s, exec: R1, command: [add], undo: [del], for: 2s}\n", []string{"1.0 exec R1 add", "3.0 exec R1 del"}},
		"longer than the scenario":         {"duration: 4s\nevents:\n  - {at: 1s, link: \"R1:eth1\", for: 1h}\n", []string{"1.0 link R1:eth1 both=false", "4.0 restore R1:eth1"}},
		"kept after another of the same":   {"events:\n  - {at: 1s, link: \"R1:eth1\", for: 1s}\n  - {at: 4s, link: \"R1:eth1\", impair: {loss: 5}, keep: true}\n", []string{"1.0 link R1:eth1 both=false", "4.0 link R1:eth1 both=false"}},
		"kept, and another of another one": {"events:\n  - {at: 1s, node: R1, do: stop}\n  - {at: 2s, node: R2, do: stop, keep: true}\n", []string{"1.0 stop R1", "2.0 stop R2", "7.0 start R1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &fakeLab{links: map[string]contract.Quality{}, began: time.Now()}
				if _, err := planOf(t, l, c.text, 1).Run(t.Context(), l, func(Record) {}); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(l.log, c.want) {
					t.Errorf("it did %q, want %q", l.log, c.want)
				}
			})
		})
	}
}

// TestJudge: the longest outage decides, also if the list of them is cut.
func TestJudge(t *testing.T) {
	p := judge(&Probe{From: "R1", Within: labtest.Duration(time.Second)}, measured{result: contract.PingResult{
		Sent: 10, Received: 5, LongestMS: 3000, MoreOutages: 7, Outages: []contract.PingOutage{{AtMS: 10, LengthMS: 20}},
	}}, time.Now(), nil)
	if p.State != Failed || p.Longest != 3 || p.More != 7 {
		t.Errorf("%+v", p)
	}
}

// TestRunReports: what cannot be done is reported, and the rest goes on.
func TestRunReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLab{links: map[string]contract.Quality{}, began: time.Now(), broken: true}
		p := planOf(t, l, "events:\n  - {at: 0s, node: R1, do: restart}\n  - {at: 1s, link: \"R1:eth1\", do: reset, keep: true}\n", 1)
		report, err := p.Run(t.Context(), l, func(Record) {})
		if err != nil || report.Failed != 1 || report.Events[0].Detail != "no right" || report.Events[1].State != Done {
			t.Errorf("%+v, %v", report, err)
		}
		if q := l.links["R1:eth1"]; q.Impairment == nil || q.Impairment.DelayMS != 1 {
			t.Errorf("reset leaves %+v", q)
		}
	})
}

// TestMake: the same seed chooses the same, another one something else, and what the lab does not
// have is reported, all of it.
func TestMake(t *testing.T) {
	l := &fakeLab{}
	const text = "events:\n  - {at: 1s, link: \"*:*\", pick: 1, times: 20, every: 1s, jitter: 500ms}\n  - {at: 3s, node: [R2, \"R*\"], pick: 2, do: stop}\n"
	steps := func(seed int64) []string {
		var out []string
		for _, s := range planOf(t, l, text, seed).Steps {
			out = append(out, fmt.Sprint(s.At, s.Target, s.Seed))
		}
		return out
	}
	if a, b := steps(7), steps(7); !slices.Equal(a, b) || len(a) != 21 {
		t.Errorf("the same seed gives\n%q\nand\n%q", a, b)
	}
	if slices.Equal(steps(7), steps(8)) {
		t.Error("another seed gives the same")
	}
	at := time.Duration(-1)
	for _, s := range planOf(t, l, text, 9).Steps {
		if s.At < at {
			t.Errorf("%s is after %s", s.At, at)
		}
		at = s.At
	}
	f, _ := Load("x.yaml", []byte(head+"probes:\n  - {from: R9, to: 10.0.0.1}\nevents:\n  - {at: 1s, link: \"R1:eth7\"}\n  - {at: 1s, node: R9, do: start}\n  - {at: 1s, exec: R9, command: ls}\n  - {at: 1s, worker: n9, do: cordon}\n  - {at: 1s, node: R1, do: stop, pick: 2}\n"))
	p, diags := Make(f, l.lab(), 1)
	var got []string
	for _, d := range diags {
		got = append(got, d.String()+" ("+d.Hint+")")
	}
	want := []string{
		`x.yaml:4:5: error: no running node is called "R9" [scenario-lab] ()`,
		`x.yaml:6:5: error: no link between nodes of the lab matches "R1:eth7" [scenario-lab] (there are: R1:eth1, R2:eth1, R1:eth2, R3:eth1)`,
		`x.yaml:8:5: error: no running node with a container of the lab matches "R9" [scenario-lab] (there are: R1, R2, R3)`,
		`x.yaml:9:5: error: no worker of the lab matches "n9" [scenario-lab] (there are: n1, n2)`,
		`x.yaml:10:5: error: pick: 2 is more than the 1 that match [scenario-lab] ()`,
	}
	if p != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%s\nwant\n%s", p, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
