package plan

import (
	"cmp"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// steps adds the steps of the kind.
func (d *draft) steps() {
	for _, s := range d.kind.Steps {
		if d.holds(s.When) {
			d.plan.Steps = append(d.plan.Steps, d.step(&s))
		}
	}
}

func (d *draft) step(s *kinds.Step) Step {
	out := Step{Name: s.Name}
	switch {
	case s.Run != nil:
		out.Run = &RunStep{Argv: d.expandAll(s.Run.Argv), Detach: s.Run.Detach}
	case s.Wait != nil:
		out.Wait = &WaitStep{
			Argv: d.expandAll(s.Wait.Argv), Contains: s.Wait.Contains, EmptyStderr: s.Wait.EmptyStderr,
			IntervalSeconds: cmp.Or(s.Wait.Interval, 1), TimeoutSeconds: s.Wait.Timeout,
		}
	case s.Write != nil:
		out.Write = &WriteStep{
			Path: s.Write.Path, Mode: cmp.Or(s.Write.Mode, 0o644),
			Content: d.templateFile(s.Write.Template, d.data),
		}
	case s.CLI != nil:
		out.CLI = &CLIStep{Argv: d.expandAll(s.CLI.Argv)}
		for _, text := range d.expandAll(s.CLI.Lines) {
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); line != "" {
					out.CLI.Lines = append(out.CLI.Lines, line)
				}
			}
		}
	}
	return out
}

// UserSteps returns the exec entries of the topology as steps in the node's main container.
func UserSteps(n *lab.Node, containers []Container) []Step {
	var out []Step
	for _, e := range n.Exec {
		out = append(out, Step{Name: e.Raw, Container: mainContainer(containers), User: true, Run: &RunStep{Argv: e.Argv}})
	}
	return out
}

// mainContainer returns "" for a node with one container, otherwise its control card: a, or b
// without an a.
func mainContainer(containers []Container) string {
	if len(containers) < 2 {
		return ""
	}
	name := containers[0].Name
	for _, c := range containers {
		if c.Name == "a" || c.Name == "b" && name != "a" {
			name = c.Name
		}
	}
	return name
}
