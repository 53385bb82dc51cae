// Package graph draws a lab: as Mermaid, as Graphviz, or as an HTML page of its own.
package graph

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/c9s-lab/c9s/pkg/lab"
)

// Graph is a lab as it is drawn.
type Graph struct {
	Name  string
	Nodes []Node
	Edges []Edge
	// Levels are indexes of Nodes, from the top row down.
	Levels [][]int
}

// Node is one box. Outside nodes stand for what is beyond the lab (the worker,
// the management network, a tunnel's far end).
type Node struct {
	ID, Name, Kind, Type, Group, Image, Mgmt string
	Outside                                  bool
	level                                    int
}

// Edge is one link between two boxes, with the interface names at its ends.
type Edge struct {
	From, To     int
	FromIf, ToIf string
	Type         lab.LinkType
}

// Writer writes a graph in one format.
type Writer func(io.Writer, *Graph) error

// Formats are the writers by name.
var Formats = map[string]Writer{"mermaid": Mermaid, "dot": Dot, "html": HTML}

// New writes a lab.
func New(l *lab.Lab) *Graph {
	g := &Graph{Name: l.Name}
	index := map[string]int{}
	for _, n := range l.Nodes {
		index[n.Name] = len(g.Nodes)
		node := Node{ID: n.ID, Name: n.Name, Kind: n.Kind, Type: n.Type, Group: n.Group, Image: n.Image, level: levelOf(n)}
		if n.MgmtIPv4.IsValid() {
			node.Mgmt = n.MgmtIPv4.String()
		} else if n.MgmtIPv6.IsValid() {
			node.Mgmt = n.MgmtIPv6.String()
		}
		g.Nodes = append(g.Nodes, node)
	}
	outside := map[string]int{}
	for _, link := range l.Links {
		e := Edge{Type: link.Type, From: index[link.Endpoints[0].Node], FromIf: link.Endpoints[0].Written()}
		if len(link.Endpoints) == 2 {
			e.To, e.ToIf = index[link.Endpoints[1].Node], link.Endpoints[1].Written()
		} else {
			name, far := beyond(link)
			if name == "" {
				continue // a dummy leads nowhere
			}
			i, ok := outside[name]
			if !ok {
				i = len(g.Nodes)
				outside[name] = i
				g.Nodes = append(g.Nodes, Node{ID: "outside-" + strconv.Itoa(len(outside)), Name: name, Outside: true, level: unknown})
			}
			e.To, e.ToIf = i, far
		}
		g.Edges = append(g.Edges, e)
	}
	g.arrange()
	return g
}

// beyond names the far side of a link with one end in the lab.
func beyond(l *lab.Link) (name, iface string) {
	switch l.Type {
	case lab.LinkHost, lab.LinkMacvlan:
		return "worker", l.HostInterface
	case lab.LinkMgmtNet:
		return "management network", l.HostInterface
	case lab.LinkVXLAN, lab.LinkVXLANStitch:
		return l.VXLAN.Remote, "vni " + strconv.Itoa(l.VXLAN.VNI)
	default:
		return "", ""
	}
}

// unknown is the level of a node that nothing places.
const unknown = -1

// roles are words in a group, a position or a name, and the rows they belong to.
var roles = []struct {
	row   int
	words []string
}{
	{0, []string{"internet", "external", "isp", "wan"}},
	{1, []string{"superspine", "super-spine", "core", "dcgw", "rr", "border"}},
	{2, []string{"spine", "agg", "distribution"}},
	{3, []string{"leaf", "access", "tor", "edge", "pe"}},
	{4, []string{"server", "host", "client", "endpoint", "customer", "ce", "pc", "tgen", "traffic"}},
}

// levelOf is the row that a node's label, position, group or name gives it.
// containerlab's label graph-level wins.
func levelOf(n *lab.Node) int {
	if v, err := strconv.Atoi(n.Labels["graph-level"]); err == nil && v >= 0 && v < 100 {
		return v
	}
	for _, text := range []string{n.Position, n.Group} {
		if text == "" {
			continue
		}
		if row := roleRow(text); row != unknown {
			return row
		}
	}
	return roleRow(strings.TrimRight(n.Name, "0123456789-_"))
}

func roleRow(text string) int {
	text = strings.ToLower(text)
	for _, r := range roles {
		for _, w := range r.words {
			if text == w || text == w+"s" || (len(w) > 3 && strings.HasPrefix(text, w)) {
				return r.row
			}
		}
	}
	return unknown
}

// arrange gives every node a row, and orders each row by its neighbours.
func (g *Graph) arrange() {
	g.placeUnknown()
	rows := map[int][]int{}
	for i, n := range g.Nodes {
		rows[n.level] = append(rows[n.level], i)
	}
	keys := make([]int, 0, len(rows))
	for k := range rows {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		g.Levels = append(g.Levels, g.split(rows[k])...)
	}
	g.untangle()
}

// maxRow bounds how many boxes stand side by side.
const maxRow = 16

// split breaks a row that is too wide into several.
func (g *Graph) split(row []int) [][]int {
	if len(row) <= maxRow {
		return [][]int{row}
	}
	parts := (len(row) + maxRow - 1) / maxRow
	var out [][]int
	for i := range parts {
		out = append(out, row[i*len(row)/parts:(i+1)*len(row)/parts])
	}
	return out
}

// placeUnknown puts nodes without a row by their links: next to or below what
// they are linked to, the node with the most links first.
func (g *Graph) placeUnknown() {
	near := make([][]int, len(g.Nodes))
	for _, e := range g.Edges {
		near[e.From] = append(near[e.From], e.To)
		near[e.To] = append(near[e.To], e.From)
	}
	var queue []int
	deepest := 0
	for i := range g.Nodes {
		if g.Nodes[i].level != unknown {
			queue = append(queue, i)
			deepest = max(deepest, g.Nodes[i].level)
		}
	}
	order := make([]int, len(g.Nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(len(near[b]), len(near[a])), strings.Compare(g.Nodes[a].Name, g.Nodes[b].Name))
	})
	walk := func() {
		for len(queue) > 0 {
			i := queue[0]
			queue = queue[1:]
			for _, j := range near[i] {
				if g.Nodes[j].level == unknown {
					g.Nodes[j].level = g.Nodes[i].level + 1
					queue = append(queue, j)
				}
			}
		}
	}
	walk()
	for _, i := range order {
		if g.Nodes[i].level == unknown && len(near[i]) > 0 {
			g.Nodes[i].level = 0
			queue = append(queue, i)
			walk()
		}
		deepest = max(deepest, g.Nodes[i].level)
	}
	for i := range g.Nodes {
		if g.Nodes[i].level == unknown { // no links at all
			g.Nodes[i].level = deepest + 1
		}
	}
}

// untangle orders the boxes of each row by the mean place of their neighbours in
// the row above, then below, a few times.
func (g *Graph) untangle() {
	place := make([]float64, len(g.Nodes))
	set := func(row []int) {
		for x, i := range row {
			place[i] = (float64(x) + 0.5) / float64(len(row))
		}
	}
	near := make([][]int, len(g.Nodes))
	for _, e := range g.Edges {
		near[e.From] = append(near[e.From], e.To)
		near[e.To] = append(near[e.To], e.From)
	}
	for _, row := range g.Levels {
		slices.SortStableFunc(row, func(a, b int) int { return natural(g.Nodes[a].Name, g.Nodes[b].Name) })
		set(row)
	}
	for range 4 {
		for _, row := range g.Levels {
			mean := map[int]float64{}
			for _, i := range row {
				sum, n := place[i], 1.0
				for _, j := range near[i] {
					sum += place[j]
					n++
				}
				mean[i] = sum / n
			}
			slices.SortStableFunc(row, func(a, b int) int {
				return cmp.Or(cmp.Compare(mean[a], mean[b]), natural(g.Nodes[a].Name, g.Nodes[b].Name))
			})
			set(row)
		}
	}
}

// natural compares names with their numbers as numbers: leaf2 before leaf10.
func natural(a, b string) int {
	for a != "" && b != "" {
		na, ra := leadingNumber(a)
		nb, rb := leadingNumber(b)
		if na != "" && nb != "" {
			if c := cmp.Or(cmp.Compare(len(na), len(nb)), strings.Compare(na, nb)); c != 0 {
				return c
			}
			a, b = ra, rb
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingNumber(s string) (number, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}
