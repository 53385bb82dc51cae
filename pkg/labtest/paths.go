package labtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/pkg/contract"
)

// mostHops is the largest number of routers on a path.
const mostHops = 16

// path adds a check of the way to an address.
func (p *planner) path(c *Path) {
	nodes := p.pingers(c.Pos, []string{c.From})
	if len(nodes) == 0 {
		return
	}
	for _, stop := range slices.Concat(c.Through, c.Avoid) {
		if _, err := netip.ParseAddr(stop); err != nil {
			p.nodes(c.Pos, []string{stop})
		}
	}
	from := nodes[0]
	if !from.Pingable() {
		p.wrong(c.Pos, "use a check under commands", "paths from kind %s cannot be traced", kindName(from))
	}
	words := []string{from.Name, "to", c.To.String()}
	if len(c.Through) > 0 {
		words = append(words, "through", strings.Join(c.Through, ", "))
	}
	if len(c.Avoid) > 0 {
		words = append(words, "avoiding", strings.Join(c.Avoid, ", "))
	}
	p.add(c.Common, step{group: "paths", cases: []string{label(c.Common, strings.Join(words, " "))}, try: func(ctx context.Context) []outcome {
		return []outcome{p.lab.trace(ctx, from, c)}
	}})
}

func (n Node) kindPing() []string {
	if n.Kind == nil {
		return nil
	}
	return n.Kind.Ping
}

// trace traces a path and judges it.
func (l *Lab) trace(ctx context.Context, from Node, c *Path) outcome {
	stops := map[string][]netip.Addr{}
	for _, stop := range slices.Concat(c.Through, c.Avoid) {
		if a, err := netip.ParseAddr(stop); err == nil {
			stops[stop] = []netip.Addr{a}
			continue
		}
		n, _ := l.node(stop)
		m, err := l.Measure(ctx, n.Pod, contract.MeasureRequest{Addresses: true})
		if err != nil {
			return outcome{err: err}
		}
		stops[stop] = m.Addresses
	}
	m, err := l.Measure(ctx, from.Pod, contract.MeasureRequest{Traces: []contract.TraceRequest{{To: c.To.Addr, Device: c.Device, Hops: mostHops}}})
	if err == nil && len(m.Traces) != 1 {
		err = errors.New("the sidecar has not answered")
	}
	if err != nil {
		return outcome{err: err}
	}
	return judgePath(c, stops, m.Traces[0])
}

// judgePath compares a path with the stops that it must and must not have.
func judgePath(c *Path, stops map[string][]netip.Addr, t contract.TraceResult) outcome {
	text := pathText(t)
	if !t.Arrived {
		return outcome{err: fmt.Errorf("%s is not reached%s: %s", c.To, because(t.Error), text)}
	}
	at := 0
	for _, stop := range c.Through {
		i := slices.IndexFunc(t.Hops[at:], func(a netip.Addr) bool { return slices.Contains(stops[stop], a) })
		if i < 0 {
			return outcome{err: fmt.Errorf("the path does not visit %s in this place: %s", stop, text)}
		}
		at += i + 1
	}
	for _, stop := range c.Avoid {
		if slices.ContainsFunc(t.Hops, func(a netip.Addr) bool { return slices.Contains(stops[stop], a) }) {
			return outcome{err: fmt.Errorf("the path visits %s: %s", stop, text)}
		}
	}
	return outcome{detail: text}
}

func pathText(t contract.TraceResult) string {
	var words []string
	for _, a := range t.Hops {
		if a.IsValid() {
			words = append(words, a.String())
		} else {
			words = append(words, "*")
		}
	}
	if len(words) == 0 {
		return "no router answers"
	}
	return strings.Join(words, " ")
}
