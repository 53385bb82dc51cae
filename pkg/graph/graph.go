// Package graph draws a lab: as text for other programs, as a picture, or as an HTML page.
package graph

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/c9s-lab/c9s/internal/natural"
	"github.com/c9s-lab/c9s/pkg/lab"
)

// Version names the shape of Graph in JSON.
const Version = "c9s.dev/graph/v1"

// Graph is a lab as it is drawn.
type Graph struct {
	Version   string `json:"version"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	// State is that of a running lab in one word, "" for a topology that is only drawn.
	State string `json:"state,omitempty"`
	// Time is when the state was read.
	Time  time.Time `json:"time,omitzero"`
	Nodes []Node    `json:"nodes"`
	Edges []Edge    `json:"links"`
	// Levels are indexes of Nodes, from the top row down.
	Levels [][]int `json:"levels"`
	// Groups are the nodes of one role, from the top down. A page folds those of large labs.
	Groups []Group `json:"groups"`
}

// Node is one box. Outside nodes stand for what is beyond the lab (the worker,
// the management network, a tunnel's far end).
type Node struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Kind    string `json:"kind,omitempty"`
	Type    string `json:"type,omitempty"`
	Group   string `json:"group,omitempty"`
	Image   string `json:"image,omitempty"`
	Mgmt    string `json:"management,omitempty"`
	Outside bool   `json:"outside,omitempty"`
	// Live is the state of the node in a running lab, nil for none.
	Live  *NodeState `json:"live,omitempty"`
	level int
}

// Edge is one link between two boxes, with the interface names at its ends.
type Edge struct {
	From   int          `json:"from"`
	To     int          `json:"to"`
	FromIf string       `json:"fromInterface"`
	ToIf   string       `json:"toInterface,omitempty"`
	Type   lab.LinkType `json:"type"`
	// Live is the state of the link in a running lab, nil for none.
	Live *LinkState `json:"live,omitempty"`
}

// Writer writes a graph in one format.
type Writer func(io.Writer, *Graph) error

// Formats are the writers by name.
var Formats = map[string]Writer{"mermaid": Mermaid, "dot": Dot, "html": HTML, "svg": SVG, "drawio": Drawio, "json": JSON}

// New returns the graph of a topology.
func New(l *lab.Lab) *Graph {
	d := Draft{Name: l.Name}
	for _, n := range l.Nodes {
		node := Node{ID: n.ID, Name: n.Name, Kind: n.Kind, Type: n.Type, Group: n.Group, Image: n.Image, level: levelOf(n.Labels, n.Position, n.Group, n.Name)}
		if n.MgmtIPv4.IsValid() {
			node.Mgmt = n.MgmtIPv4.String()
		} else if n.MgmtIPv6.IsValid() {
			node.Mgmt = n.MgmtIPv6.String()
		}
		d.add(node)
	}
	for _, link := range l.Links {
		a := link.Endpoints[0]
		if len(link.Endpoints) == 2 {
			b := link.Endpoints[1]
			d.Link(End{a.Node, a.Written()}, End{b.Node, b.Written()}, link.Type, nil)
		} else if name, far := beyond(link); name != "" { // a dummy leads nowhere
			d.LinkOutside(End{a.Node, a.Written()}, name, far, link.Type, nil)
		}
	}
	return d.Graph()
}

// Draft collects the nodes and links of a graph.
type Draft struct {
	Name, Namespace, State string
	Time                   time.Time
	nodes                  []Node
	edges                  []Edge
	index, outside         map[string]int
}

// End is an interface of a node.
type End struct{ Node, Interface string }

// Node adds a node with the labels of the topology, which may place it.
func (d *Draft) Node(n Node, labels map[string]string) {
	n.level = levelOf(labels, "", n.Group, n.Name)
	d.add(n)
}

func (d *Draft) add(n Node) {
	if d.index == nil {
		d.index, d.outside = map[string]int{}, map[string]int{}
	}
	d.index[n.Name] = len(d.nodes)
	d.nodes = append(d.nodes, n)
}

// Link adds a link between two nodes. One of nodes that are not there is left out.
func (d *Draft) Link(a, b End, t lab.LinkType, live *LinkState) {
	from, ok := d.index[a.Node]
	to, both := d.index[b.Node]
	if ok && both {
		d.edges = append(d.edges, Edge{From: from, To: to, FromIf: a.Interface, ToIf: b.Interface, Type: t, Live: live})
	}
}

// LinkOutside adds a link that leads out of the lab.
func (d *Draft) LinkOutside(a End, name, far string, t lab.LinkType, live *LinkState) {
	from, ok := d.index[a.Node]
	if !ok {
		return
	}
	to, ok := d.outside[name]
	if !ok {
		to = len(d.nodes)
		d.outside[name] = to
		d.nodes = append(d.nodes, Node{ID: "outside-" + strconv.Itoa(len(d.outside)), Name: name, Outside: true, level: unknown})
	}
	d.edges = append(d.edges, Edge{From: from, To: to, FromIf: a.Interface, ToIf: far, Type: t, Live: live})
}

// Graph arranges what was added.
func (d *Draft) Graph() *Graph {
	g := &Graph{Version: Version, Name: d.Name, Namespace: d.Namespace, State: d.State, Time: d.Time, Nodes: d.nodes, Edges: d.edges, Levels: [][]int{}, Groups: []Group{}}
	if g.Nodes == nil {
		g.Nodes = []Node{}
	}
	if g.Edges == nil {
		g.Edges = []Edge{}
	}
	g.arrange()
	g.group()
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
func levelOf(labels map[string]string, position, group, name string) int {
	if v, err := strconv.Atoi(labels["graph-level"]); err == nil && v >= 0 && v < 100 {
		return v
	}
	for _, text := range []string{position, group} {
		if text == "" {
			continue
		}
		if row := roleRow(text); row != unknown {
			return row
		}
	}
	return roleRow(stem(name))
}

// stem is a name without the number at its end.
func stem(name string) string { return strings.TrimRight(name, "0123456789-_.") }

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
		slices.SortStableFunc(row, func(a, b int) int { return natural.Compare(g.Nodes[a].Name, g.Nodes[b].Name) })
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
				return cmp.Or(cmp.Compare(mean[a], mean[b]), natural.Compare(g.Nodes[a].Name, g.Nodes[b].Name))
			})
			set(row)
		}
	}
}
