package scenario

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/labtest"
)

// Lab is the lab that a scenario is for, as far as names go.
type Lab struct {
	*labtest.Lab
	// Stopped are the nodes that are not running.
	Stopped []string
	Workers []string
	// Cordoned are the workers that take no new Pods.
	Cordoned []string
}

// Plan is a scenario for a lab: what happens when.
type Plan struct {
	Name   string
	Seed   int64
	Length time.Duration
	Steps  []Step
	Probes []Probe

	lab *Lab
}

// Step is one event.
type Step struct {
	At     time.Duration
	Event  Event
	Field  string
	Target []string
	Text   string
	Source string
	// Seed is for an impairment.
	Seed int64
}

// afterwards is how long a scenario lasts after its last event, where it does not say.
const afterwards = 5 * time.Second

// stream tells the random numbers of a scenario from others with the same seed.
const stream = 0x7363656e6172696f

// Make plans a scenario for a lab. The same seed and the same lab give the same plan. What does
// not fit the lab is reported, all of it; with an error among the diagnostics the Plan is nil.
func Make(f *File, l *Lab, seed int64) (*Plan, []diag.Diagnostic) {
	p := &planner{lab: l, diags: &diag.List{}, plan: &Plan{Name: f.Name, Seed: seed, lab: l}, rng: rand.New(rand.NewPCG(uint64(seed), stream))}
	for i := range f.Probes {
		p.probe(f.Probes[i])
	}
	for i := range f.Events {
		p.event(f.Events[i])
	}
	if p.diags.HasErrors() {
		return nil, p.diags.All()
	}
	slices.SortStableFunc(p.plan.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	p.plan.Length = time.Duration(f.Duration)
	if p.plan.Length == 0 {
		for _, s := range p.plan.Steps {
			end := s.At + time.Duration(s.Event.For)
			if s.Event.Flaps != nil {
				end += time.Duration(s.Event.Flaps.Times) * time.Duration(s.Event.Flaps.Every)
			}
			p.plan.Length = max(p.plan.Length, end+afterwards)
		}
	}
	return p.plan, p.diags.All()
}

type planner struct {
	lab   *Lab
	diags *diag.List
	plan  *Plan
	rng   *rand.Rand
}

func (p *planner) wrong(pos diag.Pos, hint, format string, args ...any) {
	p.diags.Errorf(CodeLab, pos, hint, format, args...)
}

func (p *planner) probe(probe Probe) {
	i := slices.IndexFunc(p.lab.Nodes, func(n labtest.Node) bool { return n.Name == probe.From })
	switch {
	case i < 0:
		p.wrong(probe.Pos, "", "no running node is called %q", probe.From)
		return
	case !p.lab.Nodes[i].Pingable():
		p.wrong(probe.Pos, "probe from a node of another kind", "node %s does not ping by itself", probe.From)
		return
	}
	if probe.Name == "" {
		probe.Name = probe.From + " to " + probe.To.String()
	}
	p.plan.Probes = append(p.plan.Probes, probe)
}

// match reports whether a name matches a pattern, in which * also matches a slash.
func match(pattern, name string) bool {
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
	ok, err := path.Match(flat(pattern), flat(name))
	return err == nil && ok
}

// candidates are the names that events may be about, each with its other names.
func (p *planner) candidates(field string) (out [][]string) {
	switch field {
	case "link":
		for _, l := range p.lab.Links {
			for _, e := range []labtest.End{l.A, l.B} {
				names := []string{e.String()}
				if e.Alias != "" {
					names = append(names, e.Node+":"+e.Alias)
				}
				out = append(out, names)
			}
		}
	case "worker":
		for _, w := range p.lab.Workers {
			out = append(out, []string{w})
		}
	default:
		for _, n := range p.lab.Nodes {
			if field == "node" || n.Container {
				out = append(out, []string{n.Name})
			}
		}
		if field == "node" {
			for _, name := range p.lab.Stopped {
				out = append(out, []string{name})
			}
		}
	}
	return out
}

// chosen returns what the names of an event match.
func (p *planner) chosen(e *Event, field string, names Names) []string {
	var out []string
	all := p.candidates(field)
	for _, pattern := range names {
		found := false
		for _, c := range all {
			if slices.ContainsFunc(c, func(name string) bool { return name == pattern || match(pattern, name) }) {
				found = true
				if !slices.Contains(out, c[0]) {
					out = append(out, c[0])
				}
			}
		}
		if !found {
			p.wrong(e.Pos, "there are: "+some(all), "no %s of the lab matches %q", nouns[field], pattern)
		}
	}
	if e.Pick > len(out) && len(out) > 0 {
		p.wrong(e.Pos, "", "pick: %d is more than the %d that match", e.Pick, len(out))
	}
	return out
}

var nouns = map[string]string{"link": "link between nodes", "node": "node", "worker": "worker", "exec": "running node with a container"}

// some lists names for a hint.
func some(all [][]string) string {
	const most = 12
	var names []string
	for _, c := range all {
		names = append(names, c[0])
	}
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return strings.Join(names, ", ")
}

func (p *planner) event(e Event) {
	field, names := e.targets()
	targets := p.chosen(&e, field, names)
	if len(targets) == 0 || e.Pick > len(targets) {
		return
	}
	for i := range max(1, e.Times) {
		at := time.Duration(e.At.Duration) + time.Duration(i)*time.Duration(e.Every)
		if e.Jitter > 0 {
			at += time.Duration(p.rng.Int64N(int64(e.Jitter))).Round(time.Millisecond)
		}
		chosen := targets
		if e.Pick > 0 {
			chosen = slices.Clone(targets)
			p.rng.Shuffle(len(chosen), func(a, b int) { chosen[a], chosen[b] = chosen[b], chosen[a] })
			chosen = chosen[:e.Pick]
		}
		p.plan.Steps = append(p.plan.Steps, Step{
			At: at, Event: e, Field: field, Target: chosen, Text: e.describe(field, chosen), Source: position(e.Pos), Seed: p.rng.Int64(),
		})
	}
}

func position(pos diag.Pos) string { return fmt.Sprintf("%s:%d", pos.File, pos.Line) }

// deadline is how much longer than the scenario a change of a link lasts if nothing takes it
// back, as when c9s is killed.
const deadline = time.Minute

// quality returns what a step makes of the quality of one end of a link.
func (p *Plan) quality(s *Step, now time.Time, left time.Duration) (Change, error) {
	var change func(*contract.Impairment)
	switch s.Event.Do {
	case DoDown:
		change = func(i *contract.Impairment) { i.Down = true }
	case DoUp:
		change = func(i *contract.Impairment) { i.Down = false }
	case DoFlap:
		f := s.Event.Flaps
		fault, err := contract.Flap(now, f.Times, time.Duration(f.Every), time.Duration(f.Down))
		return func(_ *contract.Impairment, q contract.Quality) contract.Quality {
			return q.Cause(fault, func(i *contract.Impairment) { i.Down = true })
		}, err
	case DoReset:
		return func(declared *contract.Impairment, _ contract.Quality) contract.Quality {
			return contract.Quality{Impairment: declared}
		}, nil
	default:
		figures, err := s.Event.Impair.Compile()
		if err != nil {
			return nil, err
		}
		if figures.Seed == 0 {
			figures.Seed = s.Seed
		}
		change = func(i *contract.Impairment) { merge(i, figures) }
	}
	length := time.Duration(s.Event.For)
	if length == 0 {
		length = left + deadline
	}
	if s.Event.Keep || s.Event.Do == DoUp {
		return func(_ *contract.Impairment, q contract.Quality) contract.Quality { return q.Change(now, change) }, nil
	}
	return func(_ *contract.Impairment, q contract.Quality) contract.Quality {
		return q.Cause(contract.Fault{Began: now.UTC(), LengthMS: min(length, contract.MaxFault).Milliseconds()}, change)
	}, nil
}

// merge sets the figures that are given.
func merge(to *contract.Impairment, from *contract.Impairment) {
	for _, f := range []struct {
		to   *float64
		from float64
	}{{&to.DelayMS, from.DelayMS}, {&to.JitterMS, from.JitterMS}, {&to.Loss, from.Loss}, {&to.Corruption, from.Corruption}, {&to.Duplication, from.Duplication}, {&to.Reordering, from.Reordering}} {
		if f.from != 0 {
			*f.to = f.from
		}
	}
	if from.RateKbit != 0 {
		to.RateKbit = from.RateKbit
	}
	to.Down = to.Down || from.Down
	to.Seed = from.Seed
}
