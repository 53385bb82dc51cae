package labtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/c9s-lab/c9s/internal/bounded"
	"github.com/c9s-lab/c9s/pkg/contract"
)

// each calls do for the number of each item, some at a time.
func each[T any](items []T, do func(i int)) { bounded.Each(len(items), atOnce, do) }

// Basics are the checks of a lab without a file of tests.
func Basics() *File { return &File{Basics: AllBasics} }

// basics adds the checks that any lab should pass.
func (p *planner) basics(names []string) {
	for _, name := range names {
		switch name {
		case BasicLinks:
			p.basicLinks()
		case BasicManagement:
			p.management()
		case BasicNames:
			p.resolving()
		case BasicLLDP:
			p.lldp()
		}
	}
}

// managed are the nodes with addresses on the management network, one of each Pod.
func (p *planner) managed() (out []Node) {
	seen := map[string]bool{}
	for _, n := range p.lab.Nodes {
		if (n.IPv4.IsValid() || n.IPv6.IsValid()) && !seen[n.Pod] {
			seen[n.Pod] = true
			out = append(out, n)
		}
	}
	return out
}

// management adds a check of each node's management addresses: the gateway reaches the node,
// and the node reaches the next one of the lab, so that each node sends and receives.
func (p *planner) management() {
	nodes := p.managed()
	for i, n := range nodes {
		next := nodes[(i+1)%len(nodes)]
		s := step{group: "management"}
		var addresses [][2]netip.Addr // own and the next node's
		for _, pair := range [][2]netip.Addr{{n.IPv4, next.IPv4}, {n.IPv6, next.IPv6}} {
			if pair[0].IsValid() {
				addresses = append(addresses, pair)
				s.cases = append(s.cases, fmt.Sprintf("%s at %s", n.Name, pair[0]))
			}
		}
		s.try = func(ctx context.Context) []outcome { return p.lab.managementOf(ctx, n, next, addresses) }
		p.add(Common{}, s)
	}
}

func (l *Lab) managementOf(ctx context.Context, n, next Node, addresses [][2]netip.Addr) []outcome {
	r := contract.MeasureRequest{}
	ping := contract.PingRequest{Count: 3, IntervalMS: 100, TimeoutMS: 1000}
	for _, a := range addresses {
		own, peer := ping, ping
		own.To, own.Gateway = a[0], true
		peer.To, peer.Source = a[1], a[0]
		if !a[1].IsValid() || next.Pod == n.Pod {
			peer = own
		}
		r.Pings = append(r.Pings, own, peer)
	}
	m, err := l.Measure(ctx, n.Pod, r)
	if err == nil && len(m.Pings) != len(r.Pings) {
		err = errors.New("the sidecar has not answered")
	}
	if err != nil {
		return all(len(addresses), err)
	}
	out := make([]outcome, len(addresses))
	for i, a := range addresses {
		own, peer := m.Pings[2*i], m.Pings[2*i+1]
		// A device that keeps its management interface elsewhere answers, but only its own
		// network namespace could ask.
		moved := peer.Sent == 0 && peer.Error != ""
		switch {
		case own.Received == 0:
			out[i].err = fmt.Errorf("the node does not answer its gateway%s", because(own.Error))
		case peer.Received == 0 && !moved:
			out[i].err = fmt.Errorf("no answer from %s at %s%s", next.Name, a[1], because(peer.Error))
		case moved:
			out[i].detail = "answers its gateway"
		default:
			out[i].detail = "answers its gateway, reaches " + next.Name
		}
	}
	return out
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// resolving adds a check that each node knows the names of all.
func (p *planner) resolving() {
	nodes := p.managed()
	want := map[string][]netip.Addr{}
	var names []string
	for _, n := range p.lab.Nodes {
		for _, name := range n.Names {
			if want[name] == nil {
				names = append(names, name)
			}
			for _, a := range []netip.Addr{n.IPv4, n.IPv6} {
				if a.IsValid() {
					want[name] = append(want[name], a)
				}
			}
		}
	}
	slices.Sort(names)
	for _, n := range nodes {
		p.add(Common{}, step{group: "names", cases: []string{n.Name}, try: func(ctx context.Context) []outcome {
			m, err := p.lab.Measure(ctx, n.Pod, contract.MeasureRequest{Names: names})
			if err == nil && len(m.Names) != len(names) {
				err = errors.New("the sidecar has not answered")
			}
			if err != nil {
				return all(1, err)
			}
			return []outcome{compareNames(names, want, m.Names)}
		}})
	}
}

// compareNames compares what names resolve to with what they should.
func compareNames(names []string, want map[string][]netip.Addr, got []contract.NameResult) outcome {
	for i, name := range names {
		missing := slices.DeleteFunc(slices.Clone(want[name]), func(a netip.Addr) bool { return slices.Contains(got[i].Addresses, a) })
		switch {
		case got[i].Error != "":
			return outcome{err: fmt.Errorf("%s does not resolve: %s", name, got[i].Error)}
		case len(missing) > 0:
			return outcome{err: fmt.Errorf("%s does not resolve to %s but to %v", name, missing[0], got[i].Addresses)}
		}
	}
	return outcome{detail: plural(len(names), "name")}
}

// lldp adds a check of each link whose ends have an LLDP reader. Only the running device
// knows whether it speaks LLDP: an end that does not leaves nothing to check.
func (p *planner) lldp() {
	var links []Link
	speaks := func(name string) bool {
		n, ok := p.lab.node(name)
		return ok && n.Container && n.Kind != nil && n.Kind.Neighbours["lldp"] != nil
	}
	for _, l := range p.lab.Links {
		if speaks(l.A.Node) && speaks(l.B.Node) && l.A.Node != l.B.Node {
			links = append(links, l)
		}
	}
	var names []string
	for _, l := range links {
		for _, e := range []End{l.A, l.B} {
			if !slices.Contains(names, e.Node) {
				names = append(names, e.Node)
			}
		}
	}
	s := step{group: "lldp"}
	for _, l := range links {
		s.cases = append(s.cases, l.A.String()+" - "+l.B.String())
	}
	s.try = func(ctx context.Context) []outcome {
		found, errs := make([][]neighbour, len(names)), make([]error, len(names))
		each(names, func(i int) {
			n, _ := p.lab.node(names[i])
			found[i], errs[i] = p.lab.neighboursOf(ctx, n, "lldp")
		})
		out := make([]outcome, len(links))
		for i, l := range links {
			out[i] = heardBy(names, found, errs, l)
		}
		return out
	}
	p.add(Common{}, s)
}

// heardBy says whether both ends of a link name one another as neighbours.
func heardBy(names []string, found [][]neighbour, errs []error, l Link) outcome {
	for _, e := range [][2]End{{l.A, l.B}, {l.B, l.A}} {
		i := slices.Index(names, e[0].Node)
		if errs[i] != nil {
			return outcome{skip: true} // it does not speak LLDP
		}
		if !slices.ContainsFunc(found[i], func(n neighbour) bool { return n.is(e[1].Node) }) {
			var have []string
			for _, n := range found[i] {
				have = append(have, strings.Join(n.names, " "))
			}
			return outcome{err: fmt.Errorf("%s has no neighbour %s, but %q", e[0].Node, e[1].Node, have)}
		}
	}
	return outcome{detail: "both ends hear one another"}
}
