//go:build !nocluster

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/c9s-lab/c9s/internal/cli/show"
	"github.com/c9s-lab/c9s/pkg/cluster"
	"github.com/c9s-lab/c9s/pkg/diag"
	"github.com/c9s-lab/c9s/pkg/manifest"
	"github.com/c9s-lab/c9s/pkg/status"
)

// progress reports the progress of a deploy: on a terminal as lines that are repainted, in
// a pipe as a line a change, or as JSON events on standard output.
type progress struct {
	world    IO
	json     bool
	terminal bool
	began    time.Time
	last     map[string]cluster.PodProgress
	painted  int
	counts   map[string]int
	name     string
	// links is how many the lab has, linksUp how many were up at the last count,
	// linksTold the count that was last shown; -1 for none.
	links     atomic.Int64
	linksUp   atomic.Int64
	linksTold int64
}

func newProgress(world IO, asJSON bool) *progress {
	p := &progress{
		world: world, json: asJSON, terminal: !asJSON && show.Terminal(world.Err) && os.Getenv("TERM") != "dumb",
		began: time.Now(), last: map[string]cluster.PodProgress{}, counts: map[string]int{},
		linksTold: -1,
	}
	p.linksUp.Store(-1)
	return p
}

// event is a line of -o json.
type event struct {
	Time    time.Time `json:"time"`
	Event   string    `json:"event"`
	Lab     string    `json:"lab,omitempty"`
	Object  string    `json:"object,omitempty"`
	Nodes   []string  `json:"nodes,omitempty"`
	State   string    `json:"state,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Source  string    `json:"source,omitempty"`
	Seconds float64   `json:"seconds,omitempty"`
	// Up and Links are of a "links" event: how many of the lab's are up.
	Up    *int64 `json:"up,omitempty"`
	Links int    `json:"links,omitempty"`
}

func (p *progress) emit(e event) {
	e.Time = time.Now().UTC().Truncate(time.Millisecond)
	data, err := json.Marshal(e)
	if err == nil {
		fmt.Fprintf(p.world.Out, "%s\n", data)
	}
}

func (p *progress) lab(name, namespace, context string) {
	p.name = name
	if p.json {
		p.emit(event{Event: "lab", Lab: name, Message: "namespace " + namespace})
		return
	}
	where := ""
	if context != "" {
		where = fmt.Sprintf(" (context %s)", context)
	}
	fmt.Fprintf(p.world.Err, "lab %s in namespace %s%s\n", show.Cell(name), namespace, where)
}

// announce prints the names of steps on a terminal.
func announce(world IO) func(step string) {
	if !show.Terminal(world.Err) {
		return nil
	}
	return func(step string) { fmt.Fprintf(world.Err, "  %s\n", step) }
}

// step reports that a step of the deploy starts.
func (p *progress) step(name string) {
	if p.json {
		p.emit(event{Event: "step", Message: name})
	}
}

func objectName(o *manifest.Object) string {
	name := ""
	if m, err := meta.Accessor(o.Object); err == nil {
		name = m.GetName()
	}
	return o.Object.GetObjectKind().GroupVersionKind().Kind + "/" + name
}

// object reports one object; of those that were applied only the number is of
// interest to people.
func (p *progress) object(c cluster.Change) {
	p.counts[c.Action]++
	switch {
	case p.json:
		e := event{Event: c.Action, Object: c.Object, Source: c.Source}
		if c.Err != nil {
			e.Event, e.Message = "failed", c.Err.Error()
		}
		p.emit(e)
	case c.Action == "applied":
		if p.terminal && p.counts[c.Action]%10 == 0 {
			p.repaint([]string{fmt.Sprintf("  %s applied", diag.Count(p.counts[c.Action], "object"))})
		}
	default:
		p.repaint(nil)
		fmt.Fprintf(p.world.Err, "  %s %s\n", c.Object, c.Action)
	}
}

func (p *progress) applied(dryRun bool, took time.Duration) {
	if p.json {
		p.emit(event{Event: "applied", Lab: p.name, Seconds: took.Seconds()})
		return
	}
	p.repaint(nil)
	what := "applied"
	if dryRun {
		what = "accepted by the API server; nothing was changed"
	}
	fmt.Fprintf(p.world.Err, "  %s %s (%.1f s)\n", diag.Count(p.counts["applied"], "object"), what, took.Seconds())
}

// countLinks is how often it is asked which links are up.
const countLinks = time.Second

// followLinks counts the links that are up until ctx ends. A lab without links has
// nothing to count.
func (p *progress) followLinks(ctx context.Context, total int, up func(context.Context) (up, all int, known bool)) {
	p.links.Store(int64(total))
	if total == 0 {
		return
	}
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if n, all, known := up(ctx); known && ctx.Err() == nil {
			p.links.Store(int64(all))
			p.linksUp.Store(int64(n))
		}
	}, countLinks)
}

// tellLinks prints how many links are up if the number has changed.
func (p *progress) tellLinks() {
	up := p.linksUp.Load()
	if up == p.linksTold {
		return
	}
	p.linksTold = up
	switch {
	case p.json:
		p.emit(event{Event: "links", Lab: p.name, Up: &up, Links: int(p.links.Load())})
	case !p.terminal:
		fmt.Fprintf(p.world.Err, "  %d of %s up\n", up, diag.Count(int(p.links.Load()), "link"))
	}
}

// progress prints the state of all Pods.
func (p *progress) progress(pods []cluster.PodProgress) {
	ready := 0
	var lines []string
	for _, pod := range pods {
		if pod.State == status.StateReady || pod.State == status.StateStopped {
			ready++
		} else if p.terminal {
			lines = append(lines, "  "+podLine(pod))
		}
		old := p.last[pod.Pod]
		if old.State == pod.State && old.Reason == pod.Reason {
			continue
		}
		p.last[pod.Pod] = pod
		switch {
		case p.json:
			p.emit(event{Event: "node", Nodes: pod.Nodes, State: string(pod.State), Reason: pod.Reason, Message: pod.Message, Source: pod.Source})
		case !p.terminal && pod.State != status.StatePending:
			fmt.Fprintf(p.world.Err, "  %s\n", podLine(pod))
		}
	}
	p.tellLinks()
	if p.terminal {
		all := fmt.Sprintf("  %d of %s ready", ready, diag.Count(len(pods), "Pod"))
		if p.linksTold >= 0 {
			all += fmt.Sprintf(", %d of %s up", p.linksTold, diag.Count(int(p.links.Load()), "link"))
		}
		p.repaint(append(fitScreen(lines), fmt.Sprintf("%s, %.0f s", all, time.Since(p.began).Seconds())))
	}
}

// fitScreen keeps what is repainted on the screen.
func fitScreen(lines []string) []string {
	const most = 20
	if len(lines) <= most {
		return lines
	}
	return append(lines[:most:most], fmt.Sprintf("  and %d more", len(lines)-most))
}

func podLine(pod cluster.PodProgress) string {
	text := fmt.Sprintf("%-20s %s", strings.Join(pod.Nodes, ","), pod.State)
	if cause := pod.Cause(); cause != "" {
		text += ": " + cause
	}
	text, _, _ = strings.Cut(text, "\n")
	return show.Cell(text)
}

// repaint replaces the lines that the last call painted.
func (p *progress) repaint(lines []string) {
	if !p.terminal {
		return
	}
	if p.painted > 0 {
		fmt.Fprintf(show.Raw(p.world.Err), "\x1b[%dA\x1b[J", p.painted)
	}
	width := 80
	if f, ok := show.File(p.world.Err); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w >= 20 {
			width = w
		}
	}
	for _, line := range lines {
		if r := []rune(line); len(r) >= width {
			line = string(r[:width-2]) + "…"
		}
		fmt.Fprintln(p.world.Err, line)
	}
	p.painted = len(lines)
}

// end leaves the last lines on the screen.
func (p *progress) end() { p.painted = 0 }

func (p *progress) ready(took time.Duration) {
	if p.json {
		p.emit(event{Event: "ready", Lab: p.name, Seconds: took.Seconds()})
		return
	}
	p.repaint(nil)
	fmt.Fprintf(p.world.Err, "lab %s is ready (%.1f s)\n", p.name, took.Seconds())
}

// commands reports commands that have failed, and how many still run.
func (p *progress) commands(nodes []status.Node) {
	running := 0
	for _, n := range nodes {
		for _, c := range n.Commands {
			switch {
			case c.Running:
				running++
			case p.json:
				p.emit(event{Event: "command", Nodes: []string{n.Name}, Reason: "failed", Message: c.String(), Source: n.Source})
			default:
				fmt.Fprintf(p.world.Err, "warning: node %s%s: %s\n", show.Cell(n.Name), show.Cell(status.At(n.Source)), show.Cell(oneLine(c.String())))
			}
		}
	}
	if running > 0 && !p.json {
		fmt.Fprintf(p.world.Err, "%s still running; run 'c9s status %s' to see how they end\n", diag.Count(running, "command"), p.name)
	}
}
