package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
	"github.com/c9s-lab/c9s/pkg/topology"
)

// stageOrder are the stages in the order in which a node goes through them.
var stageOrder = []lab.StageName{lab.StageCreate, lab.StageCreateLinks, lab.StageConfigure, lab.StageHealthy, lab.StageExit}

// compileStages appends the stages of all levels, and rejects circles.
func (c *compiler) compileStages() {
	for n := range c.eachNode() {
		for i := len(n.res.levels) - 1; i >= 0; i-- {
			s := n.res.levels[i].Stages
			if s == nil {
				continue
			}
			for name, stage := range map[lab.StageName]*topology.Stage{
				lab.StageCreate: s.Create, lab.StageCreateLinks: s.CreateLinks, lab.StageConfigure: s.Configure,
				lab.StageHealthy: s.Healthy, lab.StageExit: s.Exit,
			} {
				if stage != nil {
					c.addStage(n, name, stage)
				}
			}
		}
	}
	c.checkPodWaits()
	c.checkPodDelays()
	c.checkCycles()
}

// addStage appends one level's stage; a wait that already exists is dropped.
func (c *compiler) addStage(n *node, name lab.StageName, s *topology.Stage) {
	if n.Stages == nil {
		n.Stages = lab.Stages{}
	}
	out := n.Stages[name]
	for _, w := range s.WaitFor {
		wait := lab.WaitFor{Node: w.Node.Value, Stage: lab.StageName(w.Stage.Value)}
		switch {
		case wait.Node == "" || wait.Stage == "":
			c.diags.Errorf(topology.CodeMissingField, w.Pos, "write {node: NAME, stage: healthy}", "an entry of wait-for of node %q has no node or no stage", n.Name)
			continue
		case !slices.Contains(stageOrder, wait.Stage):
			c.diags.Errorf(topology.CodeBadValue, w.Pos, "use create, create-links, configure, healthy or exit", "unknown stage %q", w.Stage.Value)
			continue
		case c.nodes[wait.Node] == nil:
			c.diags.Errorf(CodeUnknownNode, w.Pos, c.nodeHint(wait.Node), "node %q waits for %q, which is not a node of this topology", n.Name, wait.Node)
			continue
		}
		if !slices.Contains(out.WaitFor, wait) {
			out.WaitFor = append(out.WaitFor, wait)
			n.waitPos = append(n.waitPos, waitPos{name, wait, w.Pos})
		}
	}
	for _, e := range s.Exec {
		if strings.EqualFold(e.Target.Value, "host") {
			c.diags.Warnf(CodeHostExec, e.Pos, "run the command yourself, or in a node", "a command of node %q for the container host is omitted: c9s runs nothing on your machine or on the worker", n.Name)
			continue
		}
		if e.Target.Value != "" && e.Target.Value != "container" {
			c.diags.Errorf(topology.CodeBadValue, e.Target.Pos, "use container or host", "unknown target %q", e.Target.Value)
			continue
		}
		phase := e.Phase.Value
		switch phase {
		case "":
			phase = "on-enter"
		case "on-enter", "on-exit":
		default:
			c.diags.Errorf(topology.CodeBadValue, e.Phase.Pos, "use on-enter or on-exit", "unknown phase %q", phase)
			continue
		}
		command := e.Command
		command.Value = c.magic(n).Replace(command.Value)
		if argv := c.words(command, "stage command"); argv != nil {
			out.Exec = append(out.Exec, lab.StageExec{Exec: lab.Exec{Argv: argv, Raw: command.Value}, Phase: phase})
		}
	}
	if len(out.WaitFor) > 0 || len(out.Exec) > 0 {
		n.Stages[name] = out
	}
}

// podOf returns the name of the node whose Pod a node is in. compileNetworkModes has
// resolved network-mode: container:X to the owner of the namespace.
func (c *compiler) podOf(name string) string {
	if n := c.nodes[name]; n.NetworkMode == lab.NetworkContainer {
		return n.NetworkNode
	}
	return name
}

// checkPodWaits rejects waits that a Pod cannot implement: its containers start together,
// once all of its nodes may start.
func (c *compiler) checkPodWaits() {
	for _, n := range c.order {
		for _, w := range n.waitPos {
			before := w.stage == lab.StageCreate || w.stage == lab.StageCreateLinks
			if before && w.wait.Stage != lab.StageCreate && w.wait.Node != n.Name && c.podOf(w.wait.Node) == c.podOf(n.Name) {
				c.diags.Errorf(CodePodWait, w.pos, "wait in the stage configure, or give the nodes networks of their own",
					"node %q cannot wait for %q before it starts: they share a Pod (network-mode), whose containers start together", n.Name, w.wait.Node)
			}
		}
	}
}

// checkPodDelays warns of a startup-delay that delays more than its node: the containers
// of a Pod start together, after the longest delay.
func (c *compiler) checkPodDelays() {
	longest := map[string]*node{}
	for _, n := range c.order {
		pod := c.podOf(n.Name)
		if l := longest[pod]; l == nil || n.StartupDelay > l.StartupDelay {
			longest[pod] = n
		}
	}
	for _, n := range c.order {
		if l := longest[c.podOf(n.Name)]; l.StartupDelay > n.StartupDelay {
			pos := l.res.integer(func(d *topology.NodeDef) topology.Int { return d.StartupDelay }).Pos
			c.diags.Warnf(CodePodDelay, pos, "give the nodes networks of their own, or let the command of the container sleep",
				"startup-delay of node %q also delays node %q: they share a Pod (network-mode), whose containers start together", l.Name, n.Name)
		}
	}
}

// checkCycles looks for nodes that wait for each other. Within a node each stage
// comes after the one before it; network-mode container:X waits for X's create; and a
// Pod waits for everything that one of its nodes waits for.
func (c *compiler) checkCycles() {
	type step struct {
		node  string
		stage lab.StageName
	}
	members := map[string][]*node{}
	for _, n := range c.order {
		members[c.podOf(n.Name)] = append(members[c.podOf(n.Name)], n)
	}
	state := map[step]int{} // 1: on the path, 2: done
	var path []step
	var visit func(s step) bool
	visit = func(s step) bool {
		switch state[s] {
		case 1:
			path = append(path[slices.Index(path, s):], s) // the circle alone
			return false
		case 2:
			return true
		}
		state[s] = 1
		path = append(path, s)
		n := c.nodes[s.node]
		var deps []step
		if i := slices.Index(stageOrder, s.stage); i > 0 {
			deps = append(deps, step{s.node, stageOrder[i-1]})
		}
		waits := n.Stages[s.stage].WaitFor
		if s.stage == lab.StageCreate {
			waits = nil
			for _, m := range members[c.podOf(s.node)] {
				for _, w := range m.Stages[s.stage].WaitFor {
					if w.Node == m.Name || c.podOf(w.Node) != c.podOf(m.Name) {
						waits = append(waits, w)
					}
				}
			}
			if n.NetworkMode == lab.NetworkContainer {
				deps = append(deps, step{n.NetworkNode, lab.StageCreate})
			}
		}
		for _, w := range waits {
			deps = append(deps, step{w.Node, w.Stage})
		}
		for _, d := range deps {
			if c.nodes[d.node] != nil && !visit(d) {
				return false
			}
		}
		state[s] = 2
		path = path[:len(path)-1]
		return true
	}
	for _, n := range c.order {
		for _, w := range n.waitPos {
			path = nil
			if !visit(step{n.Name, w.stage}) {
				var circle []string
				for _, s := range path {
					circle = append(circle, fmt.Sprintf("%s (%s)", s.node, s.stage))
				}
				c.diags.Errorf(CodeCycle, w.pos, "remove one of the waits", "nodes wait for each other in a cycle: %s", strings.Join(circle, " -> "))
				return
			}
		}
	}
}
