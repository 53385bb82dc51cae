package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/internal/strictyaml"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/labtest"
	"github.com/c9s-lab/c9s/pkg/policy"
)

// What events do.
const (
	DoDown     = "down"
	DoUp       = "up"
	DoFlap     = "flap"
	DoSet      = "set"
	DoReset    = "reset"
	DoStop     = "stop"
	DoStart    = "start"
	DoRestart  = "restart"
	DoCordon   = "cordon"
	DoUncordon = "uncordon"
	DoDrain    = "drain"
)

// The limits of a scenario.
const (
	longest   = 24 * time.Hour
	mostTimes = 1000
	mostSteps = 10_000
)

// Load reads a scenario. Every problem is reported with its position; with an error among them
// the File is nil.
func Load(file string, data []byte) (*File, []diag.Diagnostic) {
	l := &loader{Decoder: strictyaml.Decoder{
		File: file, Diags: &diag.List{}, Top: "in a scenario", AllKeys: "docs/reference/scenario.md lists the keys",
		Codes: strictyaml.OneCode(CodeScenario),
	}}
	f := l.load(data)
	if l.Diags.HasErrors() {
		return nil, l.Diags.All()
	}
	return f, l.Diags.All()
}

type loader struct{ strictyaml.Decoder }

func (l *loader) wrong(pos diag.Pos, hint, format string, args ...any) {
	l.Diags.Errorf(CodeScenario, pos, hint, format, args...)
}

func (l *loader) load(data []byte) *File {
	root := l.Root(data, CodeScenario, "the scenario", APIVersion)
	if root == nil {
		return nil
	}
	top := l.Pos(root)
	f := &File{}
	l.Decode(root, f, "")
	l.CheckHeader(root, strictyaml.Header{APIVersion: f.APIVersion, Kind: f.Kind}, strictyaml.Header{APIVersion: APIVersion, Kind: Kind})
	if time.Duration(f.Duration) > longest {
		l.wrong(top, "", "duration is longer than %s", longest)
	}
	if len(f.Events) == 0 {
		l.wrong(top, "add events: [{at: 5s, link: \"R1:eth1\", do: down}]", "the scenario has no events")
	}
	steps := 0
	for i := range f.Events {
		l.event(&f.Events[i], time.Duration(f.Duration))
		steps += max(1, f.Events[i].Times)
	}
	if steps > mostSteps {
		l.wrong(top, "", "the scenario has more than %d events", mostSteps)
	}
	for _, p := range f.Probes {
		l.needs(p.Pos, "a probe", map[string]bool{"from": p.From == "", "to": !p.To.IsValid()})
	}
	return f
}

// needs reports fields that are missing, by name.
func (l *loader) needs(pos diag.Pos, what string, missing map[string]bool) {
	for _, name := range []string{"at", "from", "to", "command", "impair", "every"} {
		if missing[name] {
			l.wrong(pos, "add "+name+": ...", "%s has no %s", what, name)
		}
	}
}

// targets returns the field that says what an event is about, and its names. It returns "" for an
// event without one or with several.
func (e *Event) targets() (field string, names Names) {
	n := 0
	for _, t := range []struct {
		field string
		names Names
	}{{"link", e.Link}, {"node", e.Node}, {"worker", e.Worker}, {"exec", e.Exec}} {
		if len(t.names) > 0 {
			field, names, n = t.field, t.names, n+1
		}
	}
	if n != 1 {
		return "", nil
	}
	return field, names
}

// does are the values of do, by what an event is about; the first is the default.
var does = map[string][]string{
	"link":   {DoDown, DoUp, DoFlap, DoSet, DoReset},
	"node":   {"", DoStop, DoStart, DoRestart},
	"worker": {"", DoCordon, DoUncordon, DoDrain},
	"exec":   {""},
}

func (l *loader) event(e *Event, length time.Duration) {
	field, names := e.targets()
	if field == "" {
		l.wrong(e.Pos, "write link: NODE:INTERFACE, node: NAME, worker: NAME or exec: NODE", "an event needs one of link, node, worker and exec")
		return
	}
	for _, name := range names {
		if _, err := path.Match(name, ""); err != nil {
			l.wrong(e.Pos, "use * and ? and [a-z]", "pattern %q is malformed", name)
		}
		if field == "link" && !strings.Contains(name, ":") {
			l.wrong(e.Pos, "write NODE:INTERFACE", "%q is not the end of a link", name)
		}
	}
	l.times(e, length)
	if e.Pick < 0 {
		l.wrong(e.Pos, "", "pick must not be negative")
	}
	if e.Do == "" && e.Impair != nil {
		e.Do = DoSet
	} else if e.Do == "" {
		e.Do = does[field][0]
	}
	if !slices.Contains(does[field], e.Do) || e.Do == "" && len(does[field]) > 1 {
		l.wrong(e.Pos, "use "+strings.Join(slices.DeleteFunc(slices.Clone(does[field]), func(s string) bool { return s == "" }), ", "), "do is %q for a %s", e.Do, field)
		return
	}
	l.details(e, field)
}

// times checks when an event happens.
func (l *loader) times(e *Event, length time.Duration) {
	l.needs(e.Pos, "an event", map[string]bool{"at": !e.At.given, "every": e.Times > 1 && e.Every == 0})
	last := time.Duration(e.At.Duration) + time.Duration(e.Jitter)
	switch {
	case e.Times < 0 || e.Times > mostTimes:
		l.wrong(e.Pos, "", "times must be from 1 to %d", mostTimes)
		return
	case e.Times > 1:
		last += time.Duration(e.Times-1) * min(time.Duration(e.Every), longest)
	}
	switch {
	case last > longest:
		l.wrong(e.Pos, "", "the event is later than %s", longest)
	case length > 0 && last > length:
		l.wrong(e.Pos, "let the scenario last longer, or the event be earlier", "the event is at %s, and the scenario lasts %s", last, length)
	}
	if time.Duration(e.For) > contract.MaxFault {
		l.wrong(e.Pos, "", "for is longer than %s", contract.MaxFault)
	}
}

// details checks the fields that only some events have.
func (l *loader) details(e *Event, field string) {
	for _, f := range []struct {
		name    string
		given   bool
		allowed bool
	}{
		{"impair", e.Impair != nil, e.Do == DoSet},
		{"both", e.Both, e.Do == DoSet || e.Do == DoReset},
		{"flaps", e.Flaps != nil, e.Do == DoFlap},
		{"command", len(e.Command) > 0, field == "exec"},
		{"undo", len(e.Undo) > 0, field == "exec"},
		{"for", e.For > 0, slices.Contains([]string{DoDown, DoSet, DoStop, DoCordon, DoDrain}, e.Do) || len(e.Undo) > 0},
	} {
		if f.given && !f.allowed {
			what := "an event of a " + field
			if e.Do != "" {
				what += " with do: " + e.Do
			}
			l.wrong(e.Pos, "remove it", "%s takes no %s", what, f.name)
		}
	}
	l.needs(e.Pos, "the event", map[string]bool{"impair": e.Do == DoSet && e.Impair == nil, "command": field == "exec" && len(e.Command) == 0})
	if e.Impair != nil {
		if _, err := e.Impair.Compile(); err != nil {
			l.wrong(e.Pos, "", "impair: %v", err)
		}
	}
	if e.Do == DoFlap {
		if e.Flaps == nil {
			e.Flaps = &Flaps{Pos: e.Pos}
		}
		if err := e.Flaps.complete(); err != nil {
			l.wrong(e.Flaps.Pos, "", "flaps: %v", err)
		}
	}
	if e.Keep && e.For > 0 {
		l.wrong(e.Pos, "use one of them", "keep and for exclude one another")
	}
}

// complete sets what is not written, and checks the rest.
func (f *Flaps) complete() error {
	if f.Times == 0 {
		f.Times = 3
	}
	if f.Every == 0 {
		f.Every = labtest.Duration(2 * time.Second)
	}
	if f.Down == 0 {
		f.Down = f.Every / 2
	}
	_, err := contract.Flap(time.Time{}, f.Times, time.Duration(f.Every), time.Duration(f.Down))
	return err
}

// figures are those of an impairment that are written.
func figures(i *policy.Impair) string {
	var parts []string
	for _, f := range []struct{ name, text string }{{"delay", i.Delay}, {"jitter", i.Jitter}, {"rate", i.Rate}} {
		if f.text != "" {
			parts = append(parts, f.name+" "+f.text)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"loss", i.Loss}, {"corruption", i.Corruption}, {"duplication", i.Duplication}, {"reordering", i.Reordering}} {
		if f.value != 0 {
			parts = append(parts, fmt.Sprintf("%s %g%%", f.name, f.value))
		}
	}
	if i.Down {
		parts = append(parts, DoDown)
	}
	return strings.Join(parts, ", ")
}

// describe is an event as a report has it, for some of its targets.
func (e *Event) describe(field string, targets []string) string {
	out := field + " " + strings.Join(targets, ", ")
	switch {
	case e.Name != "":
		out = e.Name + " (" + strings.Join(targets, ", ") + ")"
	case field == "exec":
		out = "exec in " + strings.Join(targets, ", ")
	case e.Do == DoFlap:
		out += fmt.Sprintf(" flap %d times every %s", e.Flaps.Times, time.Duration(e.Flaps.Every))
	case e.Do == DoSet:
		out += " " + figures(e.Impair)
	case e.Do != "":
		out += " " + e.Do
	}
	if e.For > 0 {
		out += " for " + time.Duration(e.For).String()
	}
	return out
}
