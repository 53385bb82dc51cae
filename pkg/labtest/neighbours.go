package labtest

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"github.com/c9s-lab/c9s/internal/gotemplate"
	"github.com/c9s-lab/c9s/pkg/plan/kinds"
)

// neighbour is one line of a reader.
type neighbour struct {
	// names are the addresses, ids and names of the neighbour.
	names []string
	in    string
	state string
	up    bool
}

// is reports whether the neighbour has a name. Devices add domains to names, and differ in
// how they write addresses.
func (n neighbour) is(name string) bool {
	want, err := netip.ParseAddr(name)
	return slices.ContainsFunc(n.names, func(own string) bool {
		if a, failed := netip.ParseAddr(own); failed == nil && err == nil {
			return a == want
		}
		host, _, _ := strings.Cut(own, ".")
		named := strings.ContainsFunc(host, unicode.IsLetter) // no part of an address or system id
		return strings.EqualFold(own, name) || named && strings.EqualFold(host, name)
	})
}

// neighbours adds a check of neighbours.
func (p *planner) neighbours(c *Neighbours) {
	nodes := p.running(c.Pos, c.Nodes)
	for _, n := range nodes {
		if n.Kind == nil || n.Kind.Neighbours[c.Protocol] == nil {
			p.wrong(c.Pos, "use a check under commands, or declare a reader in a kind of your own", "kind %s of node %s has no reader of %s neighbours", kindName(n), n.Name, c.Protocol)
		}
	}
	s := step{group: "neighbours"}
	type want struct {
		node  int
		name  string // "" for the count
		down  bool
		count int
	}
	var wants []want
	for i, n := range nodes {
		for _, name := range c.Up {
			wants = append(wants, want{node: i, name: name})
			s.cases = append(s.cases, label(c.Common, fmt.Sprintf("%s has %s neighbour %s", n.Name, c.Protocol, name)))
		}
		for _, name := range c.Down {
			wants = append(wants, want{node: i, name: name, down: true})
			s.cases = append(s.cases, label(c.Common, fmt.Sprintf("%s has no %s neighbour %s", n.Name, c.Protocol, name)))
		}
		if c.Count != nil {
			wants = append(wants, want{node: i, count: *c.Count})
			s.cases = append(s.cases, label(c.Common, fmt.Sprintf("%s has %d %s neighbours", n.Name, *c.Count, c.Protocol)))
		}
	}
	s.try = func(ctx context.Context) []outcome {
		found, errs := make([][]neighbour, len(nodes)), make([]error, len(nodes))
		each(nodes, func(i int) { found[i], errs[i] = p.lab.neighboursOf(ctx, nodes[i], c.Protocol) })
		out := make([]outcome, len(wants))
		for i, w := range wants {
			switch {
			case errs[w.node] != nil:
				out[i].err = errs[w.node]
			case w.name == "":
				out[i].err = countUp(found[w.node], w.count)
			default:
				out[i] = judgeNeighbour(found[w.node], w.name, w.down)
			}
		}
		return out
	}
	p.add(c.Common, s)
}

func kindName(n Node) string {
	if n.Kind == nil {
		return "(unknown)"
	}
	return n.Kind.Name
}

// judgeNeighbour says whether a neighbour is in the state that is expected.
func judgeNeighbour(found []neighbour, name string, down bool) outcome {
	var state []string
	up := false
	for _, n := range found {
		if n.is(name) {
			state = append(state, n.state)
			up = up || n.up
		}
	}
	text := strings.Join(state, ", ")
	switch {
	case up && down:
		return outcome{err: fmt.Errorf("it is %s", text)}
	case down && text == "":
		return outcome{detail: "there is none"}
	case up || down:
		return outcome{detail: text}
	case len(state) > 0:
		return outcome{err: fmt.Errorf("it is %s", text)}
	}
	return outcome{err: fmt.Errorf("there is no such neighbour; there are %s", list(found))}
}

func list(found []neighbour) string {
	var names []string
	for _, n := range found {
		names = append(names, strings.Join(n.names, " ")+" ("+n.state+")")
	}
	if len(names) == 0 {
		return "none"
	}
	return short(strings.Join(names, ", "))
}

func countUp(found []neighbour, want int) error {
	up := 0
	for _, n := range found {
		if n.up {
			up++
		}
	}
	if up != want {
		return fmt.Errorf("%d of them are up, want %d: %s", up, want, list(found))
	}
	return nil
}

// neighboursOf reads the neighbours of a node.
func (l *Lab) neighboursOf(ctx context.Context, n Node, protocol string) ([]neighbour, error) {
	reader := n.Kind.Neighbours[protocol]
	out, err := l.Exec(ctx, n, reader.Argv)
	switch {
	case err != nil:
		return nil, err
	case out.Code != 0:
		return nil, fmt.Errorf("%s failed with exit code %d%s", reader.Argv[0], out.Code, because(short(out.Err+out.Out)))
	}
	return readNeighbours(ctx, reader, out.Out)
}

// readNeighbours executes the template of a reader over the output of its command.
func readNeighbours(ctx context.Context, reader *kinds.Neighbours, output string) ([]neighbour, error) {
	up, err := regexp.Compile(reader.Up)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(output) == "" { // some devices print nothing for none
		return nil, nil
	}
	value, err := decodeJSON(output)
	if err != nil {
		return nil, err
	}
	t, err := template.New("neighbours").Funcs(gotemplate.Funcs()).Parse(reader.Read)
	if err != nil {
		return nil, err
	}
	text, err := gotemplate.Execute(ctx, t, value)
	if err != nil {
		return nil, fmt.Errorf("reading the neighbours: %w", err)
	}
	var found []neighbour
	for line := range strings.Lines(string(text)) {
		parts := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(parts) != 3 {
			continue
		}
		n := neighbour{in: strings.TrimSpace(parts[1]), state: strings.TrimSpace(parts[2])}
		for _, name := range strings.Fields(parts[0]) {
			if name != "<nil>" && name != "<no" && name != "value>" {
				n.names = append(n.names, name)
			}
		}
		n.up = up.MatchString(n.state)
		if len(n.names) > 0 {
			found = append(found, n)
		}
	}
	return found, nil
}
