package labtest

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/pkg/diag"
)

// Choice says which checks of a file to run.
type Choice struct {
	// Labels: a check needs one of them. Without any, every check is chosen.
	Labels []string
	// Timeout, if it is not 0, is that of every check.
	Timeout time.Duration
}

// Plan prepares the checks of a file for a lab. What does not fit the lab is reported, all of
// it; with an error among the diagnostics the Tests are nil.
func Plan(f *File, l *Lab, choice Choice) (*Tests, []diag.Diagnostic) {
	p := &planner{lab: l, file: f, choice: choice, tests: &Tests{}, diags: &diag.List{}}
	if len(choice.Labels) == 0 {
		p.basics(f.Basics)
	}
	for i := range f.Links {
		p.links(&f.Links[i])
	}
	for i := range f.Neighbours {
		p.neighbours(&f.Neighbours[i])
	}
	for i := range f.Reachability {
		p.reachability(&f.Reachability[i])
	}
	for i := range f.Paths {
		p.path(&f.Paths[i])
	}
	for i := range f.Commands {
		p.command(&f.Commands[i])
	}
	for i := range f.Convergence {
		p.convergence(&f.Convergence[i])
	}
	if p.diags.HasErrors() {
		return nil, p.diags.All()
	}
	return p.tests, p.diags.All()
}

type planner struct {
	lab    *Lab
	file   *File
	choice Choice
	tests  *Tests
	diags  *diag.List
}

func (p *planner) wrong(pos diag.Pos, hint, format string, args ...any) {
	p.diags.Errorf(CodeLab, pos, hint, format, args...)
}

// chosen reports whether a check is to run.
func (p *planner) chosen(c Common) bool {
	return len(p.choice.Labels) == 0 || slices.ContainsFunc(c.Labels, func(l string) bool { return slices.Contains(p.choice.Labels, l) })
}

// timeout returns how long a check is retried.
func (p *planner) timeout(own Duration) time.Duration {
	return cmp.Or(p.choice.Timeout, time.Duration(own), time.Duration(p.file.Timeout), DefaultTimeout)
}

// add adds a check unless it is not chosen or has no cases.
func (p *planner) add(c Common, s step) {
	if !p.chosen(c) || len(s.cases) == 0 {
		return
	}
	s.source, s.warning = c.Pos.String(), c.Level == levelWarning
	s.timeout = p.timeout(c.Timeout)
	p.tests.steps = append(p.tests.steps, &s)
}

// label puts the name of a check before that of a case.
func label(c Common, text string) string {
	if c.Name == "" {
		return text
	}
	return c.Name + ": " + text
}

// nodes returns the nodes of names and patterns, each once and in the order of the lab.
func (p *planner) nodes(pos diag.Pos, patterns []string) []Node {
	matched := map[string]bool{}
	for _, pattern := range patterns {
		found := false
		for _, n := range p.lab.Nodes {
			if ok, _ := path.Match(pattern, n.Name); ok || pattern == n.Name {
				matched[n.Name], found = true, true
			}
		}
		if !found {
			p.wrong(pos, "the lab has "+p.some(), "the lab has no node %q", pattern)
		}
	}
	var out []Node
	for _, n := range p.lab.Nodes {
		if matched[n.Name] {
			out = append(out, n)
		}
	}
	return out
}

// some lists nodes of the lab.
func (p *planner) some() string {
	var names []string
	for _, n := range p.lab.Nodes {
		names = append(names, n.Name)
	}
	return diag.Few(names, 8)
}

// running are nodes with a container, in which commands run.
func (p *planner) running(pos diag.Pos, patterns []string) []Node {
	nodes := p.nodes(pos, patterns)
	for _, n := range nodes {
		if !n.Container && slices.Contains(patterns, n.Name) {
			p.wrong(pos, "choose another node", "node %s has no container", n.Name)
		}
	}
	return slices.DeleteFunc(nodes, func(n Node) bool { return !n.Container })
}

// end returns the link with an end NODE:INTERFACE.
func (p *planner) end(pos diag.Pos, text string) (End, bool) {
	for _, l := range p.lab.Links {
		for _, e := range []End{l.A, l.B} {
			if text == e.String() || e.Alias != "" && text == e.Node+":"+e.Alias {
				return e, true
			}
		}
	}
	p.wrong(pos, "c9s status lists the links", "the lab has no link between nodes with the end %q", text)
	return End{}, false
}

// matchEnd reports whether a pattern meets an end.
func matchEnd(pattern string, e End) bool {
	node, in, _ := strings.Cut(pattern, ":")
	match := func(pattern, text string) bool { ok, _ := path.Match(pattern, text); return ok || pattern == text }
	return match(node, e.Node) && (match(in, e.Interface) || e.Alias != "" && match(in, e.Alias))
}

func plural(n int, word string) string {
	return fmt.Sprintf("%d %s", n, map[bool]string{true: word, false: word + "s"}[n == 1])
}
