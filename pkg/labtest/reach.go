package labtest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/c9s-lab/c9s/internal/gotemplate"
	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/diag"
)

// reachability adds a check of the addresses that nodes reach. All of one node are one
// measurement; the exceptions count only in an attempt in which the others pass, so that a lab
// that has not converged does not pass for one that filters.
func (p *planner) reachability(c *Reachability) {
	nodes := p.pingers(c.Pos, c.From)
	for _, pair := range c.Except {
		if !slices.ContainsFunc(nodes, func(n Node) bool { return matchName(pair.From, n.Name) }) {
			p.wrong(c.Pos, "", "except: %q is not a node under from", pair.From)
		}
	}
	s := step{group: "reachability"}
	for _, n := range nodes {
		for _, to := range c.To {
			text := n.Name + " reaches " + to.String()
			if c.fails(n.Name, to) {
				text = n.Name + " does not reach " + to.String()
			}
			s.cases = append(s.cases, label(c.Common, text))
		}
	}
	s.try = func(ctx context.Context) []outcome {
		out := make([][]outcome, len(nodes))
		each(nodes, func(i int) {
			errs := p.lab.pings(ctx, nodes[i], c.To, c.Size, c.Device)
			for j, to := range c.To {
				o := outcome{err: errs[j]}
				if c.fails(nodes[i].Name, to) {
					o = expectFailure(errs[j])
				}
				out[i] = append(out[i], o)
			}
		})
		return slices.Concat(out...)
	}
	p.add(c.Common, s)
}

func matchName(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok || pattern == name
}

// fails reports whether a pair is expected to fail.
func (c *Reachability) fails(node string, to Address) bool {
	return c.Unreachable || slices.ContainsFunc(c.Except, func(p Pair) bool { return p.To == to && matchName(p.From, node) })
}

// noAnswer is the error of a ping that was sent in order.
type noAnswer struct{ text string }

func (e noAnswer) Error() string { return e.text }

// expectFailure turns the result of a ping round. That a ping could not be sent proves nothing.
func expectFailure(err error) outcome {
	switch {
	case err == nil:
		return outcome{err: errors.New("it is reached")}
	case errors.As(err, &noAnswer{}):
		return outcome{detail: err.Error()}
	}
	return outcome{err: err}
}

// pingers returns nodes from which c9s can ping.
func (p *planner) pingers(pos diag.Pos, patterns []string) []Node {
	nodes := p.nodes(pos, patterns)
	for _, n := range nodes {
		if n.Kind != nil && n.Kind.VM && len(n.Kind.Ping) == 0 {
			p.wrong(pos, "use a check under commands, or give the kind a ping", "node %s is a virtual machine, and kind %s has no command to ping from it", n.Name, n.Kind.Name)
		}
	}
	return nodes
}

// pings pings addresses from a node, by its kind's command or else by its sidecar.
func (l *Lab) pings(ctx context.Context, n Node, to []Address, size int, device string) []error {
	if n.Kind != nil && len(n.Kind.Ping) > 0 {
		out := make([]error, len(to))
		for i, a := range to {
			out[i] = l.pingByCommand(ctx, n, a, size, device)
		}
		return out
	}
	r := contract.MeasureRequest{}
	for _, a := range to {
		r.Pings = append(r.Pings, contract.PingRequest{To: a.Addr, Size: size, Device: device, Count: 3, IntervalMS: 100, TimeoutMS: 1000})
	}
	out := make([]error, len(to))
	m, err := l.Measure(ctx, n.Pod, r)
	for i := range to {
		switch {
		case err != nil:
			out[i] = err
		case i >= len(m.Pings):
			out[i] = errors.New("the sidecar has not answered")
		case m.Pings[i].Sent == 0 && m.Pings[i].Error != "": // nothing was tried
			out[i] = errors.New(m.Pings[i].Error)
		case m.Pings[i].Received == 0:
			out[i] = noAnswer{"no answer"}
			if m.Pings[i].Error != "" {
				out[i] = noAnswer{m.Pings[i].Error}
			}
		}
	}
	return out
}

// pingData is what the template of a kind's ping sees.
type pingData struct {
	Address string
	IPv6    bool
	// Size is the size of the packets, Payload that of their data; 0 for small ones.
	Size, Payload int
	Device        string
}

func (l *Lab) pingByCommand(ctx context.Context, n Node, to Address, size int, device string) error {
	d := pingData{Address: to.String(), IPv6: to.Is6(), Size: size, Device: device}
	if size > 0 {
		d.Payload = size - 28
		if d.IPv6 {
			d.Payload = size - 48
		}
	}
	var argv []string
	for _, word := range n.Kind.Ping {
		t, err := template.New("ping").Funcs(gotemplate.Funcs()).Parse(word)
		if err != nil {
			return err
		}
		text, err := gotemplate.Execute(ctx, t, d)
		if err != nil {
			return err
		}
		if len(text) > 0 {
			argv = append(argv, string(text))
		}
	}
	out, err := l.Exec(ctx, n, argv)
	switch {
	case err != nil:
		return err
	case out.Code > 1:
		return fmt.Errorf("%s failed with exit code %d: %s", argv[0], out.Code, short(out.Err+out.Out))
	case out.Code == 1:
		return noAnswer{"no answer"}
	}
	return nil
}

// short is text on one line, for messages.
func short(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
