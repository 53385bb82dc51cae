package render

import (
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// gate is what holds a node back before its own start.
func (p *podRenderer) gate(n *lab.Node) contract.Gate {
	return contract.Gate{
		DelaySeconds: n.StartupDelay,
		Create:       p.waitFor(n, lab.StageCreate),
		CreateLinks:  p.waitFor(n, lab.StageCreateLinks),
	}
}

// waitFor is what n waits for before the stage called name.
func (p *podRenderer) waitFor(n *lab.Node, name lab.StageName) []contract.WaitFor {
	var out []contract.WaitFor
	for _, w := range n.Stages[name].WaitFor {
		if w.Stage == lab.StageExit {
			p.diags.Errorf(CodeWaitExit, n.Pos, "wait for the stage healthy or configure instead",
				"node %q waits for the end of node %q, whose container is restarted when it ends", n.Name, w.Node)
			continue
		}
		pod := p.podOf[w.Node]
		if pod == nil || p.skipPod(pod) {
			continue // the worker itself is always there
		}
		out = append(out, contract.WaitFor{Node: w.Node, Pod: pod.Name, Stage: string(w.Stage)})
	}
	return out
}

// programs are what runs in a node's containers once they have started. The
// first container has the stages; the others only what the plan does in them.
func (s *stager) programs(m member) []contract.Container {
	s.checkStages(m)
	strict := m.node.Policy.StrictExec != nil && *m.node.Policy.StrictExec
	var out []contract.Container
	for i, c := range m.plan.Containers {
		b := programBuilder{stager: s, member: m, container: c.Name, first: i == 0}
		if i == 0 && s.staged(m.node) {
			b.stages()
		} else {
			b.steps(false)
			b.steps(true)
		}
		if len(b.out) == 0 {
			continue
		}
		out = append(out, contract.Container{
			Name: m.containers[i],
			Program: contract.Program{
				Version: contract.ProgramVersion, Node: m.node.Name, Strict: strict, Steps: b.out,
			},
			Payloads: b.payloads,
		})
	}
	return out
}

// staged tells whether the node's stages mean anything to itself or to others.
func (p *podRenderer) staged(n *lab.Node) bool {
	return len(n.Stages) > 0 || len(p.waited[n.Name]) > 0
}

// checkStages tells of stage commands that have nowhere to run.
func (s *stager) checkStages(m member) {
	n := m.node
	if len(n.Stages[lab.StageExit].Exec) > 0 {
		s.diags.Errorf(CodeStageExec, n.Pos, "remove the commands of the stage exit",
			"node %q has commands for the stage exit, when no container is left to run them in", n.Name)
	}
	for _, name := range stageOrder {
		if len(m.plan.Containers) == 0 && len(n.Stages[name].Exec) > 0 {
			s.diags.Errorf(CodeStageExec, n.Pos, "remove the commands",
				"node %q (%s) has no container to run the commands of the stage %s in", n.Name, n.Kind, name)
		}
	}
}

var stageOrder = []lab.StageName{lab.StageCreate, lab.StageCreateLinks, lab.StageConfigure, lab.StageHealthy}

// programBuilder writes the program of one container.
type programBuilder struct {
	*stager
	member
	container string
	first     bool
	out       []contract.Step
	payloads  []contract.Entry
}

// stages writes containerlab's order: create, create-links, configure with the
// kind's steps, the topology's exec list, healthy. A container that runs has been
// created, so what create asks for on entering runs first.
func (b *programBuilder) stages() {
	for _, name := range stageOrder {
		if name == lab.StageHealthy && !b.wantsHealthy() {
			continue
		}
		if name != lab.StageCreate { // the sidecar has waited for that
			if waits := b.waitFor(b.node, name); len(waits) > 0 {
				b.out = append(b.out, contract.Step{WaitFor: waits})
			}
		}
		b.execs(name, "on-enter")
		switch name {
		case lab.StageConfigure:
			b.steps(false)
		case lab.StageHealthy:
			b.health()
		}
		b.execs(name, "on-exit")
		b.out = append(b.out, contract.Step{Over: string(name)})
		if name == lab.StageConfigure {
			b.steps(true)
		}
	}
}

func (b *programBuilder) wantsHealthy() bool {
	_, own := b.node.Stages[lab.StageHealthy]
	return own || b.waited[b.node.Name][lab.StageHealthy]
}

func (b *programBuilder) execs(name lab.StageName, phase string) {
	for _, e := range b.node.Stages[name].Exec {
		if e.Phase == phase {
			b.out = append(b.out, contract.Step{Name: e.Raw, User: true, Run: &contract.Run{Argv: e.Argv}})
		}
	}
}

// health waits until the node's own healthcheck succeeds; a node without one is
// healthy when it runs.
func (b *programBuilder) health() {
	if b.plan.Readiness == nil {
		return
	}
	check := b.plan.Readiness.Healthcheck
	argv := healthArgv(check.Test)
	if argv == nil {
		return
	}
	b.out = append(b.out, contract.Step{Name: "wait until the node is healthy", Wait: &contract.Wait{
		Argv: argv, IntervalSeconds: min(orDefault(check.Interval, dockerInterval), 5),
	}})
}

// steps writes the plan's steps of this container, the user's or the kind's.
func (b *programBuilder) steps(user bool) {
	for _, step := range b.plan.Steps {
		if step.User == user && (step.Container == b.container || step.Container == "" && b.first) {
			b.out = append(b.out, b.step(step))
		}
	}
}

func (b *programBuilder) step(s plan.Step) contract.Step {
	out := contract.Step{Name: s.Name, User: s.User}
	switch {
	case s.Run != nil:
		out.Run = &contract.Run{Argv: s.Run.Argv, Input: s.Run.Input, Detach: s.Run.Detach}
	case s.Wait != nil:
		out.Wait = &contract.Wait{
			Argv: s.Wait.Argv, Contains: s.Wait.Contains, EmptyStderr: s.Wait.EmptyStderr,
			IntervalSeconds: max(s.Wait.IntervalSeconds, 1), TimeoutSeconds: s.Wait.TimeoutSeconds,
		}
	case s.Write != nil:
		out.Write = b.write(s.Write)
	case s.CLI != nil:
		out.CLI = &contract.CLI{Argv: s.CLI.Argv, Lines: s.CLI.Lines}
	}
	return out
}

// write stages what a step writes as a payload beside the program.
func (b *programBuilder) write(w *plan.WriteStep) *contract.Write {
	out := &contract.Write{Path: w.Path, Mode: contract.Mode(w.Mode)}
	data, secret := w.Content, secretPath(b.member, w.Path)
	if w.Ref != nil {
		data, secret = b.bytes(b.node, w.Ref, w.Path), secret || w.Ref.Secret
	}
	if len(data) > 0 {
		out.Payload = payloadPath(len(b.payloads))
		b.payloads = append(b.payloads, b.content(b.member, contract.Entry{Path: out.Payload, Mode: 0o444}, data, secret))
	}
	return out
}

func orDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
