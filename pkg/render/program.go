package render

import (
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/plan"
)

// gate is what holds a node back before its own start.
func (s *stager) gate(n *lab.Node) contract.Gate {
	return contract.Gate{
		DelaySeconds: n.StartupDelay,
		Create:       s.waitFor(n, lab.StageCreate),
		CreateLinks:  s.waitFor(n, lab.StageCreateLinks),
	}
}

// waitFor is what n waits for before the stage called name.
func (s *stager) waitFor(n *lab.Node, name lab.StageName) []contract.WaitFor {
	var out []contract.WaitFor
	for _, w := range n.Stages[name].WaitFor {
		if w.Stage == lab.StageExit {
			s.diags.Errorf(CodeWaitExit, n.Pos, "wait for the stage healthy or configure instead",
				"node %q waits for node %q to exit, but its container is restarted when it exits", n.Name, w.Node)
			continue
		}
		pod := s.index.podOf[w.Node]
		if pod == nil || s.index.skipPod(pod) {
			continue // the worker itself is always there
		}
		out = append(out, contract.WaitFor{Node: w.Node, Pod: pod.Name, Stage: string(w.Stage)})
	}
	return out
}

// programs are what runs in a node's containers once they have started. The
// first container has the stages; the others only what the plan does in them. The
// Pod's first container holds the sidecar's network namespace, whatever else it runs.
func (s *stager) programs(m member) []contract.Container {
	s.checkStages(m)
	strict := m.node.Policy.StrictExec != nil && *m.node.Policy.StrictExec
	var out []contract.Container
	for i, c := range m.plan.Containers {
		b := programBuilder{files: s, member: m, container: c.Name, first: i == 0}
		if i == 0 && s.index.hasStages(m.node) {
			b.stages()
		} else {
			b.steps(false)
			b.steps(true)
		}
		hold := i == 0 && m.node.Name == s.pod.primary.Name && !s.pod.hostNetwork
		if i == 0 && s.pod.keepsDisk(m) {
			b.payloads = append(b.payloads, diskEntries()...)
		}
		helps := i == 0 && m.node.Policy.SSH != nil // the helper is what the kubelet runs
		if len(b.out) == 0 && len(b.payloads) == 0 && !hold && !helps {
			continue
		}
		out = append(out, contract.Container{
			Name: m.containers[i],
			Program: contract.Program{
				Version: contract.ProgramVersion, Node: m.node.Name, Strict: strict, Hold: hold, Steps: b.out,
			},
			Payloads: b.payloads,
		})
	}
	return out
}

// hasStages reports whether the node or another node uses the node's stages.
func (x *index) hasStages(n *lab.Node) bool {
	return len(n.Stages) > 0 || len(x.waited[n.Name]) > 0
}

// checkStages reports stage commands that have nowhere to run.
func (s *stager) checkStages(m member) {
	n := m.node
	if len(n.Stages[lab.StageExit].Exec) > 0 {
		s.diags.Errorf(CodeStageExec, n.Pos, "remove the commands of the stage exit",
			"node %q has commands for the stage exit, but no container is left to run them", n.Name)
	}
	for _, name := range stageOrder {
		if len(m.plan.Containers) == 0 && len(n.Stages[name].Exec) > 0 {
			s.diags.Errorf(CodeStageExec, n.Pos, "remove the commands",
				"node %q (%s) has no container for the commands of the stage %s", n.Name, n.Kind, name)
		}
	}
}

var stageOrder = []lab.StageName{lab.StageCreate, lab.StageCreateLinks, lab.StageConfigure, lab.StageHealthy}

// programBuilder writes the program of one container.
type programBuilder struct {
	files  *stager
	member member
	// container is the plan's name of the container, and first means that it is
	// the node's first.
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
			if waits := b.files.waitFor(b.member.node, name); len(waits) > 0 {
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
	_, own := b.member.node.Stages[lab.StageHealthy]
	return own || b.files.index.waited[b.member.node.Name][lab.StageHealthy]
}

func (b *programBuilder) execs(name lab.StageName, phase string) {
	for _, e := range b.member.node.Stages[name].Exec {
		if e.Phase == phase {
			b.out = append(b.out, contract.Step{Name: e.Raw, User: true, Run: &contract.Run{Argv: e.Argv}})
		}
	}
}

// health waits until the node's own healthcheck succeeds; a node without one is
// healthy when it runs.
func (b *programBuilder) health() {
	if b.member.plan.Readiness == nil {
		return
	}
	check := b.member.plan.Readiness.Healthcheck
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
	for _, step := range b.member.plan.Steps {
		if step.User == user && (step.Container == b.container || step.Container == "" && b.first) {
			b.out = append(b.out, b.step(step))
		}
	}
}

func (b *programBuilder) step(s plan.Step) contract.Step {
	out := contract.Step{Name: s.Name, User: s.User, Run: s.Run, CLI: s.CLI}
	if s.Wait != nil {
		wait := *s.Wait
		wait.IntervalSeconds = max(wait.IntervalSeconds, 1)
		out.Wait = &wait
	}
	if s.Write != nil {
		out.Write = b.write(s.Write)
	}
	return out
}

// write stages what a step writes as a payload next to the program.
func (b *programBuilder) write(w *plan.WriteStep) *contract.Write {
	out := &contract.Write{Path: w.Path, Mode: contract.Mode(w.Mode)}
	data, secret := w.Content, secretPath(b.member, w.Path)
	if w.Ref != nil {
		data, secret = b.files.bytes(b.member.node, w.Ref, w.Path), secret || w.Ref.Secret
	}
	if len(data) > 0 {
		out.Payload = payloadPath(len(b.payloads))
		b.payloads = append(b.payloads, b.files.content(b.member, contract.Entry{Path: out.Payload, Mode: 0o444}, data, secret))
	}
	return out
}

func orDefault(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
